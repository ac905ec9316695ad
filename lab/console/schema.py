"""The console's own description of its answers (`/api/v1/openapi.json`), and whether an answer is as described.

Knows the words of JSON Schema that the console writes. Objects with named fields are taken as complete: a field that the description lacks is
one that a reader of it does not find."""

TYPES = {"string": str, "boolean": bool, "array": list, "object": dict}


class Described:
    def __init__(self, document):
        self.document = document
        self.checked = 0

    def operation(self, method, path):
        """Of the path that matches with the most words of its own."""
        segments = path.split("?")[0].split("/")
        found = []
        for pattern, operations in self.document["paths"].items():
            words = pattern.split("/")
            if len(words) == len(segments) and all(word == given or word.startswith("{") for word, given in zip(words, segments)):
                found.append((sum(word.startswith("{") for word in words), pattern, operations))
        for _, _, operations in sorted(found, key=lambda one: one[:2]):
            if method.lower() in operations:
                return operations[method.lower()]
        return None

    def trouble(self, answer):
        """What is not as described; None: it is."""
        operation = self.operation(answer.method, answer.path)
        if operation is None:
            return None if answer.status in (404, 405, 421) else f"{answer.method} {answer.path} is not described"
        responses = operation["responses"]
        told = responses.get(str(answer.status)) or (responses.get("2XX") if answer.status < 300 else None)
        if told is None and answer.status < 400 and answer.status != 304:
            return f"the status {answer.status} is not described"
        content = (told or responses["default"])["content"].get("application/json") or (told or responses["default"])["content"].get("application/problem+json")
        if not answer.body or not content or not content["schema"]:
            return None
        try:
            document = answer.json
        except ValueError:
            # Reports of records, one after the other.
            return None
        self.checked += 1
        return self.check(content["schema"], document, "")

    def check(self, schema, value, place):
        if "$ref" in schema:
            return self.check(self.document["components"]["schemas"][schema["$ref"].rsplit("/", 1)[1]], value, place)
        if "anyOf" in schema:
            troubles = [self.check(one, value, place) for one in schema["anyOf"]]
            return None if None in troubles else " and ".join(troubles)
        kind = schema.get("type")
        if kind == "null":
            return None if value is None else f"{place} is not null"
        if kind == "integer":
            return None if isinstance(value, int) and not isinstance(value, bool) else f"{place} is no integer: {value!r:.60}"
        if kind and not isinstance(value, TYPES[kind]):
            return f"{place} is no {kind}: {value!r:.60}"
        if "enum" in schema and value not in schema["enum"]:
            return f"{place} is none of {schema['enum']}: {value!r:.60}"
        if kind == "array":
            return self.first(self.check(schema["items"], one, f"{place}[{at}]") for at, one in enumerate(value))
        return self.fields(schema, value, place) if kind == "object" else None

    def fields(self, schema, value, place):
        if "additionalProperties" in schema:
            return self.first(self.check(schema["additionalProperties"], one, f"{place}.{name}") for name, one in value.items())
        missing = [name for name in schema["required"] if name not in value]
        more = [name for name in value if name not in schema["properties"]]
        if missing or more:
            return f"{place} lacks {missing}, and has {more}"
        return self.first(self.check(one, value[name], f"{place}.{name}") for name, one in schema["properties"].items() if name in value)

    @staticmethod
    def first(troubles):
        return next((trouble for trouble in troubles if trouble), None)
