"""Paper 4: Vural, Fung, Rosales & Dy (2009), Multi-class classifiers and their underlying shared structure."""
