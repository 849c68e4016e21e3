"""The commands of `dagsail`, one module each; what a command needs is imported when it runs."""
