"""Commands that test and improve what is selected."""
