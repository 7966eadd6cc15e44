"""What users import: one family of classifiers a file."""
