"""Files of ours that somebody has changed on purpose: other content, and a right digest."""

import json

import numpy as np

from whyact.storage.netcdf import Group, Variable, read_netcdf, write_netcdf


def give_axes(group):
    """Names for the axes, which a reader does not need and a writer does."""
    variables = {
        name: Variable(tuple(f"{name}{i}" for i in range(found.values.ndim)), found.values, found.attributes)
        for name, found in group.variables.items()
    }
    return Group(variables, group.attributes)


def forge(path, edit, target=None):
    """Write a file again with what `edit` does to its groups."""
    groups = read_netcdf(path)
    edit(groups)
    write_netcdf(target or path, {name: give_axes(group) for name, group in groups.items()})
    return target or path


def set_values(group, name, edit):
    """An edit of an array: in place, or to what is returned."""

    def change_values(groups):
        found = groups[group].variables[name]
        values = found.values.copy()
        result = edit(values)
        groups[group].variables[name] = found._replace(values=values if result is None else result)

    return change_values


def add_values(group, name, values):
    """An edit that adds an array."""
    return lambda groups: groups[group].variables.update({name: Variable((), np.asarray(values))})


def set_attribute(name, value):
    """An edit of an attribute of the file."""
    return lambda groups: groups["/"].attributes.update({name: value})


def put(index, value):
    """An edit of a single number of an array."""

    def edit(values):
        values[index] = value

    return edit


def set_setting(name, value):
    """An edit of an option of the estimator."""

    def change_settings(groups):
        settings = json.loads(groups["/"].attributes["settings"])
        groups["/"].attributes["settings"] = json.dumps(settings | {name: value})

    return change_settings
