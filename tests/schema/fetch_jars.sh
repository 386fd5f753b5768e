#!/bin/sh
# Gets the jars of data/jars.txt that are not in ~/.m2 yet, in one run of Maven: tests/schema/fetch_jars.sh
set -eu
cd "$(dirname "$0")"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
items=
while read -r artifact release; do
    [ -f "$HOME/.m2/repository/org/apache/kafka/$artifact/$release/$artifact-$release.jar" ] || items="$items<artifactItem>
<groupId>org.apache.kafka</groupId><artifactId>$artifact</artifactId><version>$release</version></artifactItem>"
done < data/jars.txt
[ -n "$items" ] || exit 0
cat > "$work/pom.xml" << EOF
<project>
<modelVersion>4.0.0</modelVersion><groupId>none</groupId><artifactId>none</artifactId><version>0</version>
<packaging>pom</packaging>
<build><plugins><plugin>
<groupId>org.apache.maven.plugins</groupId><artifactId>maven-dependency-plugin</artifactId><version>3.6.1</version>
<configuration><outputDirectory>$work/jars</outputDirectory><artifactItems>$items</artifactItems></configuration>
</plugin></plugins></build>
</project>
EOF
mvn -q -B -f "$work/pom.xml" dependency:copy
