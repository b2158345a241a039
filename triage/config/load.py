"""Finding, reading and rereading the configuration. All problems of both files are told at once."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TypeVar

from pydantic import BaseModel, ValidationError

from triage.config.build import build_settings
from triage.config.categories import CategoriesKeys, category_set, clashes
from triage.config.explain import explain
from triage.config.model import AccountKeys, TriageKeys
from triage.config.problems import Problem, is_there, placed, shown
from triage.config.settings import Settings
from triage.config.values import Context
from triage.config.yamltree import Loc, Tree, parse_tree, read_tree, spell
from triage.domain.category import CategorySet
from triage.domain.errors import ConfigError

SETTINGS_FILE = "triage.yaml"
CATEGORIES_FILE = "categories.yaml"

M = TypeVar("M", bound=BaseModel)


def find_config_dir(explicit: str | None, environ: Mapping[str, str]) -> Path:
    """The directory that holds triage.yaml: `explicit`, else $TRIAGE_CONFIG, else the first of ./config,
    ~/.config/triage and /etc/triage that has it. Raises ConfigError, which lists where it looked."""
    for source, named in (("--config", explicit), ("$TRIAGE_CONFIG", environ.get("TRIAGE_CONFIG"))):
        if named:
            directory = Path(named).expanduser()
            if (directory / SETTINGS_FILE).is_file():
                return directory
            if directory.is_file():
                raise ConfigError(f"{source} {named}: is a file; name the directory that holds {SETTINGS_FILE}")
            raise ConfigError(f"{source} {named}: has no {SETTINGS_FILE}; `triage init` writes one")
    home = Path(environ["HOME"]) if environ.get("HOME") else Path.home()
    places = (Path("config"), home / ".config" / "triage", Path("/etc/triage"))
    for directory in places:
        if (directory / SETTINGS_FILE).is_file():
            return directory
    looked = ", ".join(str(place) for place in places)
    raise ConfigError(f"no {SETTINGS_FILE} found; looked in {looked}. `triage init` writes one, --config DIR names one")


def load(directory: Path, environ: Mapping[str, str] | None = None) -> Settings:
    """Both files of a configuration directory, checked. Secrets are not fetched yet: see `check_secrets`.

    Raises ConfigError with every problem of both files, each with file, line and remedy.
    """
    environ = os.environ if environ is None else environ
    tree = read_tree(directory / SETTINGS_FILE)
    context = Context(environ, directory)
    keys, problems = _validate(TriageKeys, tree, context, _repeated_accounts)
    told = [p.at(tree.path) for p in problems]
    sets: dict[Path, CategorySet] = {}
    looked_at: set[Path] = set()
    for loc, name in _categories_files(tree, keys).items():
        path = placed(directory, name)
        if path in looked_at:
            continue
        looked_at.add(path)
        if not is_there(path):
            text = f"{spell(loc)} names {shown(path)}, which is not there; `triage init` writes one"
            told.append(f"{tree.where(loc)}: {text}")
            continue
        try:
            sets[path] = load_categories(path, environ)
        except ConfigError as error:
            told.extend(error.problems)
    if told or keys is None:
        raise ConfigError(*told)
    return build_settings(keys, tree, sets, context)


def load_categories(path: Path, environ: Mapping[str, str] | None = None) -> CategorySet:
    """One categories file, checked. Raises ConfigError with every problem of it."""
    return _categories(read_tree(path), environ)


def parse_categories(text: str, path: Path, environ: Mapping[str, str] | None = None) -> CategorySet:
    """The same from text; `path` is only for messages."""
    return _categories(parse_tree(text.encode(), path), environ)


def reload(
    directory: Path, old: Settings, environ: Mapping[str, str] | None = None
) -> tuple[Settings, tuple[str, ...]]:
    """Read the configuration again: the new settings and no problems, or the old ones and what is wrong."""
    try:
        return load(directory, environ), ()
    except ConfigError as error:
        return old, error.problems


def check_secrets(settings: Settings) -> tuple[str, ...]:
    """Fetch every secret once and throw it away: what is missing, each with file, line and remedy."""
    problems: list[str] = []
    for secret in settings.secrets:
        try:
            secret.get()
        except ConfigError as error:
            problems.extend(error.problems)
    return tuple(problems)


def validate(model: type[M], tree: Tree, environ: Mapping[str, str] | None = None) -> M:
    """Any other YAML file of ours against its model, with the same messages. Raises ConfigError."""
    context = Context(os.environ if environ is None else environ, tree.path.parent)
    keys, problems = _validate(model, tree, context, lambda _: {})
    if problems or keys is None:
        raise ConfigError(*(p.at(tree.path) for p in problems))
    return keys


def _categories(tree: Tree, environ: Mapping[str, str] | None) -> CategorySet:
    context = Context(os.environ if environ is None else environ, tree.path.parent)
    keys, problems = _validate(CategoriesKeys, tree, context, lambda t: dict(clashes(t)))
    if problems or keys is None:
        raise ConfigError(*(p.at(tree.path) for p in problems))
    return category_set(keys)


def _validate(
    model: type[M], tree: Tree, context: Context, between_entries: Callable[[Tree], Mapping[Loc, str]]
) -> tuple[M | None, list[Problem]]:
    """The checked keys (None where they cannot be used) and all problems in the order of the file."""
    problems = list(tree.problems)
    keys: M | None = None
    if isinstance(tree.data, dict):
        try:
            keys = model.model_validate(tree.data, context=context)
        except ValidationError as error:
            problems += explain(error, model, tree)
        problems += [Problem(tree.line(loc), f"{spell(loc)} {text}") for loc, text in between_entries(tree).items()]
    else:
        problems.append(Problem(1, "must be a block of keys (`key: value` lines)"))
    return keys, sorted(set(problems))


def _repeated_accounts(tree: Tree) -> dict[Loc, str]:
    accounts = tree.data.get("accounts") if isinstance(tree.data, dict) else None
    found: dict[Loc, str] = {}
    names: dict[str, int] = {}
    mailboxes: dict[tuple[str, ...], int] = {}
    for i, account in enumerate(accounts if isinstance(accounts, list) else ()):
        if not isinstance(account, dict):
            continue
        name = account.get("name")
        if isinstance(name, str):
            first = names.setdefault(name.casefold(), i)
            if first != i:
                found["accounts", i, "name"] = f"is the name of accounts[{first}] already; names must differ"
        login = (str(account.get(key, "")).casefold() for key in ("host", "port", "username"))
        mailbox = (*login, str(account.get("inbox", "INBOX")))
        first = mailboxes.setdefault(mailbox, i)
        if first != i and mailbox[0]:
            found["accounts", i] = (
                f"sorts the same mailbox as accounts[{first}]; keep one, or give them different inboxes"
            )
    return found


def _categories_files(tree: Tree, keys: TriageKeys | None) -> dict[Loc, str]:
    """Which categories files to read, also when triage.yaml itself has problems."""
    default = AccountKeys.model_fields["categories"].default
    if keys is not None:
        return {("accounts", i, "categories"): account.categories for i, account in enumerate(keys.accounts)}
    accounts = tree.data.get("accounts") if isinstance(tree.data, dict) else None
    return {
        ("accounts", i, "categories"): name
        for i, account in enumerate(accounts if isinstance(accounts, list) else ())
        if isinstance(account, dict) and isinstance(name := account.get("categories", default), str)
    }
