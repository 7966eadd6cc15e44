"""Paper 1: Lee, Lin & Wahba (2004), Multicategory support vector machines. JASA 99(465), 67-81."""
