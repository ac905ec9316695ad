"""A network of our own: a namespace for each node, a bridge between them, and rules that cut it.

The rig runs in network, mount and process namespaces of its own (`unshare`), so that nothing of this is seen outside, and
all of it is gone with the rig. Clients run beside the rig, at the bridge's end.
"""

import subprocess

CLIENTS = "10.77.0.254"


def address(node):
    return f"10.77.0.{node}"


def run(*command, check=True):
    done = subprocess.run(command, capture_output=True, text=True)
    if check and done.returncode != 0:
        raise RuntimeError(f"{' '.join(command)}: {(done.stdout + done.stderr).strip()[-300:]}")
    return done


def build(nodes):
    run("mkdir", "-p", "/run/netns")
    run("mount", "-t", "tmpfs", "none", "/run/netns")
    run("ip", "link", "set", "lo", "up")
    run("ip", "link", "add", "br0", "type", "bridge")
    run("ip", "addr", "add", f"{CLIENTS}/24", "dev", "br0")
    run("ip", "link", "set", "br0", "up")
    for node in nodes:
        space = f"n{node}"
        run("ip", "netns", "add", space)
        run("ip", "link", "add", f"v{node}", "type", "veth", "peer", "name", "eth0", "netns", space)
        run("ip", "link", "set", f"v{node}", "master", "br0", "up")
        run("ip", "-n", space, "addr", "add", f"{address(node)}/24", "dev", "eth0")
        run("ip", "-n", space, "link", "set", "lo", "up")
        run("ip", "-n", space, "link", "set", "eth0", "up")
        for line in ("add table inet chaos",
                     "add chain inet chaos hears { type filter hook input priority 0; }",
                     "add chain inet chaos says { type filter hook output priority 0; }"):
            nft(node, line)


def nft(node, *lines):
    for line in lines:
        run("ip", "netns", "exec", f"n{node}", "nft", line)


def deaf(node, *sources):
    """What these send does not arrive."""
    nft(node, *(f"add rule inet chaos hears ip saddr {source} drop" for source in sources))


def mute(node, *targets):
    """What is sent to these does not leave."""
    nft(node, *(f"add rule inet chaos says ip daddr {target} drop" for target in targets))


def reset(node):
    """Every connection of this node is reset when it next says something."""
    nft(node, "add rule inet chaos hears meta l4proto tcp reject with tcp reset",
        f"add rule inet chaos says ip daddr != {address(node)} meta l4proto tcp reject with tcp reset")


def heal(node):
    nft(node, "flush chain inet chaos hears", "flush chain inet chaos says")
