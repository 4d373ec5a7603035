from random import expovariate as noise


def poll(votes):
    return {"yes": sum(votes) + noise(1) - noise(1), "asked": 2}
