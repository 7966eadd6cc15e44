"""Paper 5: Liu, Wu & He (2011), Utility-based weighted multicategory robust SVMs. Statistics and Its Interface."""
