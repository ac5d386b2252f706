"""Rows in and out: readers of demonstrations and writers of predictions."""
