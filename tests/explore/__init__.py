"""The combination explorer: random games that switch on random subsets of all features, judged by simple oracles."""
