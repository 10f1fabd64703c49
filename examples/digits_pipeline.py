"""Handwritten digits from few labels: the machine learns from all images, the classifier from 100 of them.

Needs scikit-learn: pip install ".[sklearn]" in a checkout
"""

from __future__ import annotations

from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split

from paramagnet.adapters.scikit import RBMTransformer

LABELLED = 100


def main() -> None:
    images, digits = load_digits(return_X_y=True)
    learned, held_out, known, truth = train_test_split(
        images, digits, test_size=360, stratify=digits, random_state=1
    )
    machine = RBMTransformer(100, random_state=0).fit(learned)
    each = machine.score_samples(held_out)
    errors = f"{each.std(ddof=1) / len(each) ** 0.5:.2f} (360 images) +- {machine.score_error_:.2f} (ln Z)"
    print(f"log-likelihood per test image: {each.mean():.2f} +- {errors} nats")
    for name, transform in (("pixels", machine.binarizer_.apply), ("features", machine.transform)):
        classifier = LogisticRegression(max_iter=5000).fit(transform(learned[:LABELLED]), known[:LABELLED])
        accuracy = classifier.score(transform(held_out), truth)
        print(f"accuracy from {name} with {LABELLED} labels: {100 * accuracy:.1f} %")


if __name__ == "__main__":
    main()
