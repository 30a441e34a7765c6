"""Sends samples to `dynident live` as a robot's controller would, with nothing but the standard library.

    python examples/live_sender.py LOG.csv.gz              # a log with t, q1.., tau1.. (or i1..), at its own pace
    python examples/live_sender.py --rate 1000             # a sine of six joints instead
    python examples/live_sender.py --malformed 0.1         # every tenth packet is rubbish

On the other side: dynident live udp://127.0.0.1:9870 --robot ROBOT
"""

import argparse
import csv
import gzip
import json
import math
import random
import socket
import time
from urllib.parse import urlsplit


def from_log(path):
    """A log's rows as packets: columns q1, q2 .. become a list "q", and so on."""
    with (gzip.open if path.endswith(".gz") else open)(path, "rt", newline="") as file:
        for number, row in enumerate(csv.DictReader(file)):
            packet = {"seq": number, "t": float(row["t"])}
            for kind in ("q", "dq", "tau", "qm", "taum", "i"):
                if names := [name for name in row if name.rstrip("0123456789") == kind]:
                    packet[kind] = [float(row[name]) for name in names]
            yield packet


def sine(rate, seconds, joints=6):
    """Every joint swings at its own pace; torque is what a mass of its own would need."""
    for number in range(round(rate * seconds)):
        t = number / rate
        q = [0.3 * math.sin((2.0 + 0.5 * j) * t) for j in range(joints)]
        yield {"seq": number, "t": t, "q": q, "tau": [-0.5 * (2.0 + 0.5 * j) ** 2 * q[j] for j in range(joints)]}


def rubbish(line, chance):
    """One of the things that go wrong on the way, none of which is a sample."""
    infinite = line.replace(b'"t": ', b'"t": 1e999, "x": ')
    return chance.choice([line[: len(line) // 2], b"\xff\xfe\x00", b"[" * 5000, infinite])


def connect(address):
    """A function that sends a line."""
    parts = urlsplit(address)
    if parts.scheme == "tcp":
        stream = socket.create_connection((parts.hostname, parts.port))
        return lambda line: stream.sendall(line + b"\n")
    packets = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    return lambda line: packets.sendto(line, (parts.hostname, parts.port))


def main():
    """Send."""
    parser = argparse.ArgumentParser(description="Sends samples to dynident live.")
    parser.add_argument("log", nargs="?", help="CSV or CSV.gz; default a sine")
    for name, default in (("rate", 200.0), ("seconds", 1.0), ("malformed", 0.0), ("pace", 1.0)):
        parser.add_argument(f"--{name}", type=float, default=default)
    parser.add_argument("--to", default="udp://127.0.0.1:9870")
    given = parser.parse_args()
    packets = from_log(given.log) if given.log else sine(given.rate, given.seconds)
    ready = [(packet["t"], json.dumps(packet).encode()) for packet in packets]
    print(f"{len(ready)} samples to {given.to}", flush=True)
    send, chance, bad, began = connect(given.to), random.Random(0), 0, time.perf_counter()
    for stamp, line in ready:
        time.sleep(max(0.0, (stamp - ready[0][0]) / given.pace - (time.perf_counter() - began)))
        while chance.random() < given.malformed:
            send(rubbish(line, chance))
            bad += 1
        send(line)
    print(f"malformed packets between them: {bad}\ntook {time.perf_counter() - began:.1f} s")


if __name__ == "__main__":
    main()
