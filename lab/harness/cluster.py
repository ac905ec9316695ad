"""Several nodes as one cluster, each a `Server` that is broker and controller, on loopback."""

from concurrent.futures import ThreadPoolExecutor


def join(nodes):
    """Gives nodes {number: server} their numbers and one quorum of all of them."""
    voters = ",".join(f"{number}@127.0.0.1:{node.controller_port}" for number, node in nodes.items())
    for number, node in nodes.items():
        node.overrides |= {"node.id": str(number), "controller.quorum.voters": voters}


def launch(nodes):
    """Starts all of them, and does not wait: alone none of them is a cluster. They are formatted side by side, which takes a JVM seconds."""
    with ThreadPoolExecutor() as pool:
        list(pool.map(lambda node: node.prepare(), nodes))
    for node in nodes:
        node.launch()


def start(nodes):
    """Starts all of them and waits until each answers."""
    launch(nodes)
    for node in nodes:
        node.await_ready()
