"""One's own files, one for each client, up to the fairness table: runs offline in a second."""

from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

from fedaccord import FedAvg, Federation, FedPCD, LocalSGD, simulate
from fedaccord.data import clients_from_folder
from fedaccord.metrics import evaluate_clients, fairness_summary
from fedaccord.models import cross_entropy, logistic

draw = Random(0)
with TemporaryDirectory() as folder:  # here would be your own: ward1.csv, ward2.csv, ...
    for ward, size, threshold in (("ward1", 300, 50), ("ward2", 200, 50), ("ward3", 50, 75)):
        ages = [draw.randint(20, 90) for _ in range(size)]
        rows = [f"{age},{draw.choice('fm')},{'yes' if age > threshold else 'no'}" for age in ages]
        Path(folder, f"{ward}.csv").write_text("\n".join(["age,sex,sick", *rows]))
    data = clients_from_folder(folder, target="sick", test_fraction=0.3)

(num_classes,) = data.num_classes
model = lambda: logistic(data.num_features, num_classes)  # noqa: E731
federation = Federation(model, cross_entropy, data.clients)
for rule in (FedAvg(), FedPCD()):
    *_, last = simulate(rule, federation, rounds=20, local=LocalSGD(lr=0.5))
    scores = evaluate_clients(federation.module(last.training), data.tests, num_classes=num_classes)
    print(type(rule).__name__, fairness_summary(scores.accuracies[:, 0], moment="after 20 rounds"))
