"""Scalar expressions of SQL, which become expressions of Arrow with the logic of three values."""
