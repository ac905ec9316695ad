//! Kafka's names in Rust's spelling.

/// `TransactionalId` → `transactional_id`; `KRaftVersion` → `kraft_version`.
pub fn snake(name: &str) -> String {
    let letters: Vec<char> = name.replace("KRaft", "Kraft").chars().collect();
    let mut out = String::new();
    for (index, &letter) in letters.iter().enumerate() {
        let after_lower = index > 0 && !letters[index - 1].is_uppercase();
        let before_lower = letters.get(index + 1).is_some_and(|next| next.is_lowercase());
        if letter.is_uppercase() && index > 0 && (after_lower || before_lower) {
            out.push('_');
        }
        out.extend(letter.to_lowercase());
    }
    out
}

/// A field's name as an identifier.
pub fn field(name: &str) -> String {
    let name = snake(name);
    match name.as_str() {
        "type" | "match" | "ref" | "where" | "use" | "in" | "move" | "loop" => format!("r#{name}"),
        _ => name,
    }
}

/// `topicName` → `TopicName`; what begins with a capital stays.
pub fn camel(name: &str) -> String {
    let mut letters = name.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}
