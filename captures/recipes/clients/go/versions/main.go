// Every version of every request that the broker offers its clients, one after the other, as franz-go's messages encode it.
//
// Usage: versions BOOTSTRAP [USER PASSWORD]
package main

import (
	"fmt"
	"log"
	"os"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

const topic = "timetable"

// A call makes a request of one version; nil when there is nothing to ask in it.
type call func(version int16) kmsg.Request

func text(value string) *string { return &value }

// each sends a request in every version from the first to the last that the broker has, as far as it has them.
func (c *conn) each(key, from, to int16, made call) {
	for version := from; version <= to; version++ {
		if request := made(version); request != nil && c.has(key, version) {
			c.ask(request, version)
		}
	}
}

func main() {
	log.SetFlags(0)
	address, user, password := os.Args[1], "", ""
	if len(os.Args) > 3 {
		user, password = os.Args[2], os.Args[3]
		for version := int16(0); version <= 2; version++ {
			dial(address, user, password, version).Close()
		}
	}
	c := dial(address, user, password, 2)
	defer c.Close()
	c.each(18, 0, 5, func(int16) kmsg.Request { return greeting() })
	topics(c)
	records(c)
	groups(c)
	transactions(c)
	administration(c)
	if user != "" {
		tokens(c, user)
	}
	newGroups(c)
}

func topics(c *conn) {
	c.each(19, 0, 7, func(version int16) kmsg.Request {
		request := kmsg.NewPtrCreateTopicsRequest()
		request.TimeoutMillis = 5000
		one := kmsg.NewCreateTopicsRequestTopic()
		one.Topic, one.NumPartitions, one.ReplicationFactor = fmt.Sprintf("line-%d", version), 1, 1
		setting := kmsg.NewCreateTopicsRequestTopicConfig()
		setting.Name, setting.Value = "retention.ms", text("600000")
		one.Configs = append(one.Configs, setting)
		placed := kmsg.NewCreateTopicsRequestTopic()
		placed.Topic, placed.NumPartitions, placed.ReplicationFactor = fmt.Sprintf("placed-%d", version), -1, -1
		assignment := kmsg.NewCreateTopicsRequestTopicReplicaAssignment()
		assignment.Replicas = []int32{1}
		placed.ReplicaAssignment = append(placed.ReplicaAssignment, assignment)
		request.Topics = append(request.Topics, one, placed)
		return request
	})
	create := kmsg.NewPtrCreateTopicsRequest()
	one := kmsg.NewCreateTopicsRequestTopic()
	one.Topic, one.NumPartitions, one.ReplicationFactor = topic, 1, 1
	create.Topics = append(create.Topics, one)
	c.ask(create, 7)
	c.each(37, 0, 3, func(version int16) kmsg.Request {
		request := kmsg.NewPtrCreatePartitionsRequest()
		request.TimeoutMillis = 5000
		one := kmsg.NewCreatePartitionsRequestTopic()
		one.Topic, one.Count = fmt.Sprintf("line-%d", version), 2
		request.Topics = append(request.Topics, one)
		return request
	})
	c.each(20, 0, 6, func(version int16) kmsg.Request {
		request := kmsg.NewPtrDeleteTopicsRequest()
		request.TimeoutMillis = 5000
		request.TopicNames = []string{fmt.Sprintf("line-%d", version), "no-such-line"}
		one := kmsg.NewDeleteTopicsRequestTopic()
		one.Topic = text("line-6")
		request.Topics = append(request.Topics, one)
		return request
	})
	c.each(3, 0, 13, func(version int16) kmsg.Request {
		request := kmsg.NewPtrMetadataRequest()
		for _, name := range []string{topic, "no-such-line"} {
			one := kmsg.NewMetadataRequestTopic()
			one.Topic = text(name)
			request.Topics = append(request.Topics, one)
		}
		request.IncludeTopicAuthorizedOperations = version >= 8
		return request
	})
	metadata := kmsg.NewPtrMetadataRequest()
	one1 := kmsg.NewMetadataRequestTopic()
	one1.Topic = text(topic)
	metadata.Topics = append(metadata.Topics, one1)
	c.topicID = c.ask(metadata, 12).(*kmsg.MetadataResponse).Topics[0].TopicID
}

func records(c *conn) {
	c.each(0, 0, 13, func(version int16) kmsg.Request {
		request := kmsg.NewPtrProduceRequest()
		request.Acks, request.TimeoutMillis = -1, 5000
		one := kmsg.NewProduceRequestTopic()
		one.Topic, one.TopicID = topic, c.topicID
		partition := kmsg.NewProduceRequestTopicPartition()
		value := fmt.Sprintf(`{"departure": %d}`, version)
		switch {
		case version < 2:
			partition.Records = message(0, value)
		case version == 2:
			partition.Records = message(1, value)
		default:
			partition.Records = batch(value, -1, -1)
		}
		one.Partitions = append(one.Partitions, partition)
		request.Topics = append(request.Topics, one)
		return request
	})
	c.each(1, 0, 18, func(version int16) kmsg.Request {
		request := kmsg.NewPtrFetchRequest()
		request.ReplicaID, request.MaxWaitMillis, request.MinBytes, request.MaxBytes = -1, 100, 1, 1<<20
		request.SessionEpoch = -1
		one := kmsg.NewFetchRequestTopic()
		one.Topic, one.TopicID = topic, c.topicID
		partition := kmsg.NewFetchRequestTopicPartition()
		partition.FetchOffset, partition.PartitionMaxBytes, partition.CurrentLeaderEpoch = 2, 1<<16, -1
		one.Partitions = append(one.Partitions, partition)
		request.Topics = append(request.Topics, one)
		return request
	})
	c.each(2, 0, 11, func(version int16) kmsg.Request {
		request := kmsg.NewPtrListOffsetsRequest()
		request.ReplicaID, request.TimeoutMillis = -1, 1000
		one := kmsg.NewListOffsetsRequestTopic()
		one.Topic = topic
		for partition, timestamp := range []int64{-1, -2} {
			place := kmsg.NewListOffsetsRequestTopicPartition()
			place.Partition, place.Timestamp, place.MaxNumOffsets = int32(partition), timestamp, 3
			one.Partitions = append(one.Partitions, place)
		}
		request.Topics = append(request.Topics, one)
		return request
	})
	c.each(23, 0, 4, func(int16) kmsg.Request {
		request := kmsg.NewPtrOffsetForLeaderEpochRequest()
		request.ReplicaID = -1
		one := kmsg.NewOffsetForLeaderEpochRequestTopic()
		one.Topic = topic
		partition := kmsg.NewOffsetForLeaderEpochRequestTopicPartition()
		one.Partitions = append(one.Partitions, partition)
		request.Topics = append(request.Topics, one)
		return request
	})
	c.each(21, 0, 2, func(version int16) kmsg.Request {
		request := kmsg.NewPtrDeleteRecordsRequest()
		request.TimeoutMillis = 5000
		one := kmsg.NewDeleteRecordsRequestTopic()
		one.Topic = topic
		partition := kmsg.NewDeleteRecordsRequestTopicPartition()
		partition.Offset = int64(version)
		one.Partitions = append(one.Partitions, partition)
		request.Topics = append(request.Topics, one)
		return request
	})
}

func administration(c *conn) {
	c.each(32, 0, 4, func(version int16) kmsg.Request {
		request := kmsg.NewPtrDescribeConfigsRequest()
		one := kmsg.NewDescribeConfigsRequestResource()
		one.ResourceType, one.ResourceName, one.ConfigNames = kmsg.ConfigResourceTypeTopic, topic, []string{"retention.ms"}
		request.IncludeSynonyms, request.IncludeDocumentation = true, version >= 3
		request.Resources = append(request.Resources, one)
		return request
	})
	c.each(33, 0, 2, func(version int16) kmsg.Request {
		request := kmsg.NewPtrAlterConfigsRequest()
		one := kmsg.NewAlterConfigsRequestResource()
		one.ResourceType, one.ResourceName = kmsg.ConfigResourceTypeTopic, topic
		setting := kmsg.NewAlterConfigsRequestResourceConfig()
		setting.Name, setting.Value = "retention.ms", text(fmt.Sprint(600000+int(version)))
		one.Configs = append(one.Configs, setting)
		request.Resources = append(request.Resources, one)
		return request
	})
	c.each(44, 0, 1, func(version int16) kmsg.Request {
		request := kmsg.NewPtrIncrementalAlterConfigsRequest()
		one := kmsg.NewIncrementalAlterConfigsRequestResource()
		one.ResourceType, one.ResourceName = kmsg.ConfigResourceTypeTopic, topic
		setting := kmsg.NewIncrementalAlterConfigsRequestResourceConfig()
		setting.Name, setting.Value = "segment.ms", text(fmt.Sprint(900000+int(version)))
		one.Configs = append(one.Configs, setting)
		request.Resources = append(request.Resources, one)
		return request
	})
	c.each(35, 0, 5, func(int16) kmsg.Request {
		request := kmsg.NewPtrDescribeLogDirsRequest()
		one := kmsg.NewDescribeLogDirsRequestTopic()
		one.Topic, one.Partitions = topic, []int32{0}
		request.Topics = append(request.Topics, one)
		return request
	})
	c.each(34, 0, 2, func(int16) kmsg.Request {
		request := kmsg.NewPtrAlterReplicaLogDirsRequest()
		dir := kmsg.NewAlterReplicaLogDirsRequestDir()
		dir.Dir = "/no/such/folder"
		one := kmsg.NewAlterReplicaLogDirsRequestDirTopic()
		one.Topic, one.Partitions = topic, []int32{0}
		dir.Topics = append(dir.Topics, one)
		request.Dirs = append(request.Dirs, dir)
		return request
	})
	rules(c)
	c.each(43, 0, 2, func(int16) kmsg.Request {
		request := kmsg.NewPtrElectLeadersRequest()
		request.TimeoutMillis = 5000
		one := kmsg.NewElectLeadersRequestTopic()
		one.Topic, one.Partitions = topic, []int32{0}
		request.Topics = append(request.Topics, one)
		return request
	})
	c.each(45, 0, 1, func(int16) kmsg.Request {
		request := kmsg.NewPtrAlterPartitionAssignmentsRequest()
		request.TimeoutMillis = 5000
		one := kmsg.NewAlterPartitionAssignmentsRequestTopic()
		one.Topic = topic
		partition := kmsg.NewAlterPartitionAssignmentsRequestTopicPartition()
		partition.Replicas = []int32{7}
		one.Partitions = append(one.Partitions, partition)
		request.Topics = append(request.Topics, one)
		return request
	})
	c.each(46, 0, 0, func(int16) kmsg.Request { return kmsg.NewPtrListPartitionReassignmentsRequest() })
	c.each(48, 0, 1, func(int16) kmsg.Request {
		request := kmsg.NewPtrDescribeClientQuotasRequest()
		one := kmsg.NewDescribeClientQuotasRequestComponent()
		one.EntityType, one.MatchType = "client-id", kmsg.QuotasMatchTypeAny
		request.Components = append(request.Components, one)
		return request
	})
	c.each(49, 0, 1, func(int16) kmsg.Request {
		request := kmsg.NewPtrAlterClientQuotasRequest()
		entry := kmsg.NewAlterClientQuotasRequestEntry()
		entity := kmsg.NewAlterClientQuotasRequestEntryEntity()
		entity.Type, entity.Name = "client-id", text("dispatcher")
		change := kmsg.NewAlterClientQuotasRequestEntryOp()
		change.Key, change.Value = "consumer_byte_rate", 65536.5
		entry.Entity, entry.Ops = append(entry.Entity, entity), append(entry.Ops, change)
		request.Entries = append(request.Entries, entry)
		return request
	})
	c.each(55, 0, 2, func(int16) kmsg.Request {
		request := kmsg.NewPtrDescribeQuorumRequest()
		one := kmsg.NewDescribeQuorumRequestTopic()
		one.Topic = "__cluster_metadata"
		one.Partitions = append(one.Partitions, kmsg.NewDescribeQuorumRequestTopicPartition())
		request.Topics = append(request.Topics, one)
		return request
	})
	c.each(57, 0, 2, func(version int16) kmsg.Request {
		request := kmsg.NewPtrUpdateFeaturesRequest()
		request.TimeoutMillis, request.ValidateOnly = 5000, version > 0
		one := kmsg.NewUpdateFeaturesRequestFeatureUpdate()
		one.Feature, one.MaxVersionLevel, one.UpgradeType = "no.such.feature", 7, 1
		request.FeatureUpdates = append(request.FeatureUpdates, one)
		return request
	})
	c.each(60, 0, 2, func(int16) kmsg.Request {
		request := kmsg.NewPtrDescribeClusterRequest()
		request.IncludeClusterAuthorizedOperations, request.EndpointType = true, 1
		return request
	})
	c.each(61, 0, 0, func(int16) kmsg.Request {
		request := kmsg.NewPtrDescribeProducersRequest()
		one := kmsg.NewDescribeProducersRequestTopic()
		one.Topic, one.Partitions = topic, []int32{0}
		request.Topics = append(request.Topics, one)
		return request
	})
	c.each(74, 0, 1, func(int16) kmsg.Request {
		request := kmsg.NewPtrListConfigResourcesRequest()
		request.ResourceTypes = []int8{2, 16}
		return request
	})
	c.each(75, 0, 0, func(int16) kmsg.Request {
		request := kmsg.NewPtrDescribeTopicPartitionsRequest()
		one := kmsg.NewDescribeTopicPartitionsRequestTopic()
		one.Topic = topic
		request.Topics, request.ResponsePartitionLimit = append(request.Topics, one), 10
		return request
	})
}

func rules(c *conn) {
	c.each(30, 0, 3, func(version int16) kmsg.Request {
		request := kmsg.NewPtrCreateACLsRequest()
		one := kmsg.NewCreateACLsRequestCreation()
		one.ResourceType, one.ResourceName, one.ResourcePatternType = 2, fmt.Sprintf("line-%d", version), 3
		one.Principal, one.Host, one.Operation, one.PermissionType = "User:dispatcher", "*", 3, 3
		request.Creations = append(request.Creations, one)
		return request
	})
	c.each(29, 0, 3, func(int16) kmsg.Request {
		request := kmsg.NewPtrDescribeACLsRequest()
		request.ResourceType, request.ResourcePatternType, request.Operation, request.PermissionType = 2, 1, 1, 1
		return request
	})
	c.each(31, 0, 3, func(version int16) kmsg.Request {
		request := kmsg.NewPtrDeleteACLsRequest()
		one := kmsg.NewDeleteACLsRequestFilter()
		one.ResourceType, one.ResourcePatternType, one.Operation, one.PermissionType = 2, 1, 1, 1
		one.ResourceName = text(fmt.Sprintf("line-%d", version))
		request.Filters = append(request.Filters, one)
		return request
	})
}

func tokens(c *conn, owner string) {
	hmacs := map[int16][]byte{}
	for version := int16(0); version <= 3; version++ {
		request := kmsg.NewPtrCreateDelegationTokenRequest()
		request.MaxLifetimeMillis = 3600000
		renewer := kmsg.NewCreateDelegationTokenRequestRenewer()
		renewer.PrincipalType, renewer.PrincipalName = "User", "bob"
		request.Renewers = append(request.Renewers, renewer)
		if c.has(38, version) {
			hmacs[version] = c.ask(request, version).(*kmsg.CreateDelegationTokenResponse).HMAC
		}
	}
	last := hmacs[3]
	time.Sleep(time.Second) // the broker learns of its tokens by the metadata log
	c.each(41, 0, 3, func(int16) kmsg.Request {
		request := kmsg.NewPtrDescribeDelegationTokenRequest()
		one := kmsg.NewDescribeDelegationTokenRequestOwner()
		one.PrincipalType, one.PrincipalName = "User", owner
		request.Owners = append(request.Owners, one)
		return request
	})
	c.each(39, 0, 2, func(int16) kmsg.Request {
		request := kmsg.NewPtrRenewDelegationTokenRequest()
		request.HMAC, request.RenewTimeMillis = last, 600000
		return request
	})
	c.each(40, 0, 2, func(version int16) kmsg.Request {
		request := kmsg.NewPtrExpireDelegationTokenRequest()
		request.HMAC, request.ExpiryPeriodMillis = last, -1
		if held := hmacs[version]; held != nil {
			request.HMAC = held
		}
		return request
	})
}
