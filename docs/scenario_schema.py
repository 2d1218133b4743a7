"""Prints the JSON schema of scenario files, by which editors complete and check them (`#:schema` in the first line).

    .venv/bin/python docs/scenario_schema.py > python/firstflight/scenario.schema.json

A test compares the output with the file.
"""

import json

from firstflight.scenario import Scenario


def main() -> None:
    """The whole schema, a definition a line."""
    schema = {"$schema": "https://json-schema.org/draft/2020-12/schema"} | Scenario.model_json_schema()
    definitions = schema.pop("$defs")
    rows = ",\n".join(f"{json.dumps(name)}: {json.dumps(held, sort_keys=True)}" for name, held in definitions.items())
    print(f'{json.dumps(schema, sort_keys=True)[:-1]},\n"$defs": {{\n{rows}\n}}}}')


if __name__ == "__main__":
    main()
