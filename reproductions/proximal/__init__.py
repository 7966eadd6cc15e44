"""Paper 2: Fung & Mangasarian (2005), Multicategory proximal SVM classifiers. Machine Learning 59, 77-97."""
