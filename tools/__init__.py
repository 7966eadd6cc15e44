"""What releases need besides the tests."""
