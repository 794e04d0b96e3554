"""The combination explorer: random games that switch on random features, judged by simple oracles."""
