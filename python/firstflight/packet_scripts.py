"""Packet scripts. The native module runs them in virtual time; their `%{ }%` blocks are Python, evaluated here.

A block changes nothing in the connection, so that all are evaluated after the run, with the values of their time.
"""

import ast
import json
import textwrap
from typing import Any

from firstflight import _native

_FUNCTIONS = {function.__name__: function for function in (abs, float, int, len, max, min, round, str)}
# What a block may be made of: no attribute, index, loop, definition or power.
_ALLOWED = (
    *(ast.Module, ast.Assert, ast.Assign, ast.AugAssign, ast.Expr, ast.If, ast.Pass),
    *(ast.Import, ast.ImportFrom, ast.alias),
    *(ast.BinOp, ast.BoolOp, ast.Call, ast.Compare, ast.Constant, ast.Name, ast.Tuple, ast.UnaryOp, ast.expr_context),
    *(ast.boolop, ast.cmpop, ast.unaryop, ast.Add, ast.Sub, ast.Mult, ast.Div, ast.FloorDiv, ast.Mod),
    *(ast.BitAnd, ast.BitOr, ast.LShift, ast.RShift),
)
_IMPOSSIBLE = (SyntaxError, ArithmeticError, TypeError, ValueError, MemoryError, RecursionError)


def run_script(text: str, tolerance_ns: int) -> dict[str, Any]:
    """Run a packet script; `tolerance_ns` is how far an event may be from its time.

    The report has verdict (pass, differs, unsupported, error), reason, line, details, notes.
    """
    report: dict[str, Any] = json.loads(_native.run_script(text, tolerance_ns))
    names = _Names(_FUNCTIONS, print=lambda *values: report["notes"].append(" ".join(map(str, values))))
    for check in report.pop("checks"):
        names.known = check["values"]
        try:
            _evaluate(check["code"], names)
        except _StopError as stop:
            line = check["line"] + stop.line - 1
            report |= {"verdict": stop.verdict, "reason": f"line {line}: {stop}", "line": line, "details": []}
            if stop.verdict == "differs":
                shown = f"line {line}: {text.splitlines()[line - 1].strip()}"
                segments = [f"  {row}" for row in check["segments"]]
                report["details"] = [shown, *(["segments, the latest last:"] if segments else []), *segments]
            break
    return report


class _StopError(Exception):
    """Why a block ends its script; `line` counts from 1 in the block."""

    def __init__(self, verdict: str, sentence: str, line: int = 1) -> None:
        super().__init__(sentence)
        self.verdict, self.line = verdict, line


class _Names(dict[str, Any]):
    """Functions and what the script has assigned; behind them, what the native module knows."""

    known: dict[str, int | str]
    """A number, or a sentence: why there is none."""

    def __missing__(self, name: str) -> int:
        value = self.known.get(name)
        if value is None:
            sentence = f'nothing is called "{name}" here; names are tcpi_..., TCP_CA_... and assigned ones'
            raise _StopError("error", sentence)
        if isinstance(value, str):
            raise _StopError("unsupported", value)
        return value


def _evaluate(code: str, names: _Names) -> None:
    source = textwrap.dedent(code).lstrip(" \t")
    try:
        tree = ast.parse(source)
    except _IMPOSSIBLE as error:
        line, why = (error.lineno, error.msg) if isinstance(error, SyntaxError) else (1, "it nests too deeply")
        raise _StopError("error", f"this %{{ }}% block is no Python ({why}); correct it", line or 1) from None
    for node in ast.walk(tree):
        if not isinstance(node, _ALLOWED):
            shown = ast.get_source_segment(source, node) or type(node).__name__
            sentence = f'"{shown}" in a %{{ }}% block is not understood'
            raise _StopError("unsupported", sentence, getattr(node, "lineno", 1))
    _run(tree.body, source, names)


def _run(statements: list[ast.stmt], source: str, names: _Names) -> None:
    for node in statements:
        try:
            match node:
                case ast.If():
                    _run(node.body if _value(node.test, names) else node.orelse, source, names)
                case ast.Assert() if not _value(node.test, names):
                    inside = dict.fromkeys(part.id for part in ast.walk(node.test) if isinstance(part, ast.Name))
                    values = ", ".join(f"{name} is {names[name]}" for name in inside if name not in _FUNCTIONS)
                    values = values or (str(_value(node.msg, names)) if node.msg else "it never holds")
                    raise _StopError("differs", f"assert {ast.get_source_segment(source, node.test)}: {values}")
                case ast.Assign() | ast.AugAssign() | ast.Expr():
                    exec(compile(ast.Module([node], []), "%{ }%", "exec"), {"__builtins__": {}}, names)
        except _StopError as stop:
            raise _StopError(stop.verdict, str(stop), max(stop.line, node.lineno)) from None
        except _IMPOSSIBLE as error:
            raise _StopError("error", f"this statement has no value ({error}); correct it", node.lineno) from None


def _value(expression: ast.expr, names: _Names) -> Any:
    return eval(compile(ast.Expression(expression), "%{ }%", "eval"), {"__builtins__": {}}, names)
