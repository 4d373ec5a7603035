"""Models, fitted as diffprivlib's documentation does, on columns with public bounds."""

from __future__ import annotations

import numpy as np
from diffprivlib import models
from diffprivlib.models.utils import covariance_eig


def table(rows):
    """Two columns of numbers."""
    return np.array([[row["age"], row["income"]] for row in rows], dtype=float)


def column(rows, name):
    """One of them."""
    return np.array([row[name] for row in rows])


def naive_bayes(rows):
    """Gaussian naive Bayes: a mean and a variance for each class."""
    model = models.GaussianNB(epsilon=1.0, bounds=(0, 100))
    model.fit(table(rows), column(rows, "smokes"))
    return [*model.theta_.ravel().tolist(), *model.var_.ravel().tolist()]


def naive_bayes_with_priors(rows):
    """The same, where the shares of the classes are public."""
    model = models.GaussianNB(epsilon=1.0, bounds=(0, 100), priors=[0.7, 0.3])
    model.fit(table(rows), column(rows, "smokes"))
    return model.theta_.ravel().tolist()


def clusters(rows):
    """Three centres."""
    given = {"epsilon": 1.0, "bounds": (0, 100)}
    model = models.KMeans(n_clusters=3, **given).fit(table(rows))
    return model.cluster_centers_.ravel().tolist()


def regression(rows):
    """A line with an intercept."""
    model = models.LinearRegression(epsilon=1.0, bounds_X=(0, 100), bounds_y=(0, 100))
    model.fit(table(rows)[:, :1], column(rows, "income").astype(float))
    return [float(model.coef_[0]), float(model.intercept_)]


def centred_regression(rows):
    """A line through the origin, of columns that lie around it."""
    model = models.LinearRegression(
        epsilon=1.0, bounds_X=(-50, 50), bounds_y=(-50, 50), fit_intercept=False
    )
    both = np.clip(table(rows), 0, 100) - 50
    return float(model.fit(both[:, :1], both[:, 1]).coef_[0])


def classifier(rows):
    """Logistic regression of two classes."""
    model = models.LogisticRegression(epsilon=1.0, data_norm=150.0)
    model.fit(table(rows), column(rows, "smokes"))
    return [*model.coef_.ravel().tolist(), float(model.intercept_[0])]


def components(rows):
    """The first principal component."""
    model = models.PCA(n_components=1, epsilon=1.0, bounds=(0, 100), data_norm=150.0)
    return model.fit(table(rows)).components_.ravel().tolist()


def centred_components(rows):
    """The same, of data around the origin."""
    model = models.PCA(n_components=1, epsilon=1.0, centered=True, data_norm=80.0)
    return model.fit(np.clip(table(rows), 0, 100) - 50).components_.ravel().tolist()


def eigenvalues(rows):
    """Those of the covariance alone."""
    scaled = (np.clip(table(rows), 0, 100) - 50) / 80
    return covariance_eig(scaled, epsilon=1.0, norm=1.0, eigvals_only=True).tolist()


def forest(rows):
    """A random forest of three trees, by what it says of the rows' corners."""
    given = {"bounds": (0, 100), "classes": [0, 1], "max_depth": 2}
    model = models.RandomForestClassifier(n_estimators=3, epsilon=1.0, **given)
    model.fit(table(rows), column(rows, "smokes"))
    return model.predict([[0, 0], [0, 100], [100, 0], [100, 100]]).tolist()


def tree(rows):
    """One tree."""
    given = {"bounds": (0, 100), "classes": [0, 1], "max_depth": 2}
    model = models.DecisionTreeClassifier(epsilon=1.0, **given)
    model.fit(table(rows), column(rows, "smokes"))
    return model.predict([[0, 0], [0, 100], [100, 0], [100, 100]]).tolist()


def tree_without_classes(rows):
    """The same, where the classes are left to the library."""
    given = {"bounds": (0, 100), "max_depth": 2}
    model = models.DecisionTreeClassifier(epsilon=1.0, **given)
    return model.fit(table(rows), column(rows, "smokes")).classes_.tolist()


def scaler(rows):
    """Means and variances of both columns."""
    model = models.StandardScaler(epsilon=1.0, bounds=(0, 100)).fit(table(rows))
    return [*model.mean_.tolist(), *model.var_.tolist()]
