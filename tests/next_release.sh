#!/bin/sh
# Moves to the next release of Kafka: tests/next_release.sh 4.5.0
#
# Fetches its jars, prints what is different in it, imports it, and writes anew what the tests hold the definitions to:
# Kafka's own messages, its enumerations and its protocol guide. The configs that are passwords are learned, too. The
# tests at the end name what has to be written by hand.
# Needs java, javac, mvn, Maven Central, and a Python with kwiresniff's test dependencies (PYTHON, or python3).
set -eu
release=$1
python=${PYTHON:-python3}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$(dirname "$0")/.."

fetch() { # folder, artifact
    mvn -q -B org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy "-Dartifact=$2" "-DoutputDirectory=$1"
}

for each in clients metadata raft storage group-coordinator transaction-coordinator share-coordinator streams; do
    fetch "$work/kafka" "org.apache.kafka:kafka-$each:$release" > "$work/log" || echo "there is no kafka-$each $release"
done
for jar in "$work"/kafka/*.jar; do
    echo "== ${jar##*/}"
    "$python" -m kwiresniff schema check "$jar" || true
done
"$python" -m kwiresniff schema import "$work"/kafka/*.jar

before=$(cat tests/newest_release.txt)
echo "$release" > tests/newest_release.txt
tests/schema/data/enums/regenerate.sh
tests/schema/data/password_configs/regenerate.sh "$release"
fetch "$work" org.slf4j:slf4j-api:1.7.36
java -cp "$work/kafka/kafka-clients-$release.jar:$work/slf4j-api-1.7.36.jar" \
    org.apache.kafka.common.protocol.Protocol > "$work/guide.html" 2> "$work/log"
"$python" -m tests.schema.guide "$work/guide.html" > "$work/guide.txt"
rm "tests/schema/data/guide-$before.txt"
mv "$work/guide.txt" "tests/schema/data/guide-$release.txt"
"$python" -m tests.oracle.generator
"$python" -m pytest -q tests/schema tests/oracle
