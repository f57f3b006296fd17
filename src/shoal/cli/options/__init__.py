"""The options and the help of each command. Its code is imported when it is called."""
