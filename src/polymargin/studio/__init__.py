"""The studio: a file, its columns, training and predictions in the browser, served to this machine alone."""
