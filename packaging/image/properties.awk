# Prints KAFKA_… variables as lines of a properties file, in no order. What configures a JVM is no key.
BEGIN {
    split("VERSION HEAP_OPT HEAP_OPTS LOG4J_OPTS OPTS JMX_OPTS JVM_PERFORMANCE_OPTS GC_LOG_OPTS LOG4J_ROOT_LOGLEVEL " \
        "LOG4J_LOGGERS TOOLS_LOG4J_LOGLEVEL JMX_HOSTNAME", names, " ")
    for (at in names) left_out["KAFKA_" names[at]] = 1
    for (name in ENVIRON) {
        if (name !~ /^KAFKA_/ || name in left_out) continue
        key = tolower(substr(name, 7))
        gsub(/_/, ".", key)
        gsub(/[.][.][.]/, "-", key)
        gsub(/[.][.]/, "_", key)
        print key "=" ENVIRON[name]
    }
}
