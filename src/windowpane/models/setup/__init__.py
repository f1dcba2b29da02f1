"""What providers need before their models can be used: a key, a package, an address."""
