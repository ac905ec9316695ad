"""Requests as other people's tools send them, each with what the tool looks at in the answer: Grafana's Kafka contact point, the `confluent` CLI
against a REST proxy, and the Confluent provider of Terraform. Written from what is known of the tools' APIs; nothing was recorded, and the tools
themselves do not run here."""

from .ask import ask

JSON = {"Content-Type": "application/json", "Accept": "application/json"}
V2 = {"Content-Type": "application/vnd.kafka.json.v2+json", "Accept": "application/vnd.kafka.v2+json"}
ALERT = {
    "alert_state": "alerting", "client": "Grafana", "client_url": "https://grafana.example/alerting/list", "description": "[FIRING:1] disk (node1)",
    "details": "**Firing**\n\nValue: A=9.1e+01", "incident_key": "6e3538104c14b583da237e9693b76debbc17f0f8058ef20492e5853096cf8733",
    "contexts": [{"type": "image", "src": "https://grafana.example/image.png"}],
}
TOPIC = "from-a-tool"
CONFIG = [{"name": "retention.ms", "value": "86400000"}]
ACL = {
    "resource_type": "TOPIC", "resource_name": TOPIC, "pattern_type": "LITERAL", "principal": "User:tool", "host": "*", "operation": "WRITE",
    "permission": "ALLOW",
}
FILTER = "&".join(f"{name}={value.replace(':', '%3A').replace('*', '%2A')}" for name, value in ACL.items())


def shapes(cluster):
    """(tool, method, path, headers, body, status, what it looks at)"""
    plain, inside = f"/v3/clusters/{cluster}", f"/kafka/v3/clusters/{cluster}"
    alert = {"value": {"type": "JSON", "data": ALERT}}
    return [
        ("terraform", "POST", f"{inside}/topics", JSON, {"topic_name": TOPIC, "partitions_count": 2, "configs": CONFIG}, 201, {"topic_name": TOPIC}),
        ("terraform", "GET", f"{inside}/topics/{TOPIC}", JSON, None, 200, {"partitions_count": 2}),
        ("terraform", "GET", f"{inside}/topics/{TOPIC}/configs", JSON, None, 200, lambda found: any(one["name"] == "retention.ms" and one["value"] == "86400000" for one in found["data"])),
        ("terraform", "POST", f"{inside}/topics/{TOPIC}/configs:alter", JSON, {"data": [{"name": "retention.ms", "value": "3600000"}]}, 204, None),
        ("terraform", "PATCH", f"{inside}/topics/{TOPIC}", JSON, {"partitions_count": 3}, 200, {"partitions_count": 3}),
        ("terraform", "POST", f"{inside}/acls", JSON, ACL, 201, None),
        ("terraform", "GET", f"{inside}/acls?{FILTER}", JSON, None, 200, lambda found: len(found["data"]) == 1),
        ("terraform", "GET", f"{inside}/broker-configs", JSON, None, 200, {"kind": "KafkaClusterConfigList"}),
        ("confluent", "GET", "/v3/clusters", JSON, None, 200, {"data.0.cluster_id": cluster}),
        ("confluent", "GET", "/kafka/v3/clusters", JSON, None, 200, {"data.0.cluster_id": cluster}),
        ("confluent", "GET", f"{plain}/topics", JSON, None, 200, lambda found: TOPIC in [one["topic_name"] for one in found["data"]]),
        ("confluent", "GET", f"{plain}/topics/{TOPIC}/partitions", JSON, None, 200, lambda found: len(found["data"]) == 3),
        ("confluent", "GET", f"{plain}/topics/{TOPIC}/partitions/0/replicas", JSON, None, 200, {"data.0.is_leader": True}),
        ("confluent", "GET", f"{plain}/consumer-groups", JSON, None, 200, {"kind": "KafkaConsumerGroupList"}),
        ("confluent", "GET", f"{plain}/brokers", JSON, None, 200, {"data.0.broker_id": 1}),
        ("grafana v2", "POST", f"/topics/{TOPIC}", V2, {"records": [{"value": ALERT}]}, 200, {"offsets.0.error_code": None}),
        ("grafana v3", "POST", f"{plain}/topics/{TOPIC}/records", JSON, alert, 200, {"error_code": 200}),
        ("grafana v3", "POST", f"{inside}/topics/{TOPIC}/records", JSON, alert, 200, {"error_code": 200}),
        ("terraform", "DELETE", f"{inside}/acls?{FILTER}", {"Accept": "application/json"}, None, 200, lambda found: len(found["data"]) == 1),
        ("terraform", "DELETE", f"{inside}/topics/{TOPIC}", {"Accept": "application/json"}, None, 204, None),
    ]


def check(table, port, cluster, user=None):
    for tool, method, path, headers, body, status, has in shapes(cluster):
        table.answered(f"{tool}: {method} {path}", ask(port, method, path, body, headers, user), status, has)
