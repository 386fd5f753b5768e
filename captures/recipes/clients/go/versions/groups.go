package main

import (
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// subscription and assignment of the consumer protocol, version 0, without user data.
func subscription() []byte {
	protocol := kmsg.NewConsumerMemberMetadata()
	protocol.Topics = []string{topic}
	return protocol.AppendTo(nil)
}

func assignment() []byte {
	protocol := kmsg.NewConsumerMemberAssignment()
	one := kmsg.NewConsumerMemberAssignmentTopic()
	one.Topic, one.Partitions = topic, []int32{0}
	protocol.Topics = append(protocol.Topics, one)
	return protocol.AppendTo(nil)
}

// join makes the client the one member of a group; newer versions are told their member id first.
func join(c *conn, group string, version int16) (string, int32) {
	request := kmsg.NewPtrJoinGroupRequest()
	request.Group, request.SessionTimeoutMillis, request.RebalanceTimeoutMillis = group, 30000, 1000
	request.ProtocolType = "consumer"
	one := kmsg.NewJoinGroupRequestProtocol()
	one.Name, one.Metadata = "range", subscription()
	request.Protocols = append(request.Protocols, one)
	response := c.ask(request, version).(*kmsg.JoinGroupResponse)
	if response.ErrorCode == 79 {
		request.MemberID = response.MemberID
		response = c.ask(request, version).(*kmsg.JoinGroupResponse)
	}
	return response.MemberID, response.Generation
}

func sync(c *conn, group, member string, generation int32, version int16) {
	request := kmsg.NewPtrSyncGroupRequest()
	request.Group, request.MemberID, request.Generation = group, member, generation
	request.ProtocolType, request.Protocol = text("consumer"), text("range")
	one := kmsg.NewSyncGroupRequestGroupAssignment()
	one.MemberID, one.MemberAssignment = member, assignment()
	request.GroupAssignment = append(request.GroupAssignment, one)
	c.ask(request, version)
}

func groups(c *conn) {
	c.each(10, 0, 6, func(version int16) kmsg.Request {
		request := kmsg.NewPtrFindCoordinatorRequest()
		request.CoordinatorKey, request.CoordinatorKeys = "passengers", []string{"passengers", "drivers"}
		return request
	})
	time.Sleep(2 * time.Second) // the first question makes the broker create its topic for offsets
	for version := int16(0); version <= 9; version++ {
		if !c.has(11, version) {
			continue
		}
		group := fmt.Sprintf("passengers-%d", version)
		member, generation := join(c, group, version)
		if c.has(14, min(version, 5)) {
			sync(c, group, member, generation, min(version, 5))
		}
		if version <= 4 {
			beat := kmsg.NewPtrHeartbeatRequest()
			beat.Group, beat.MemberID, beat.Generation = group, member, generation
			c.ask(beat, version)
		}
		if version <= 5 {
			leave := kmsg.NewPtrLeaveGroupRequest()
			leave.Group, leave.MemberID = group, member
			one := kmsg.NewLeaveGroupRequestMember()
			one.MemberID, one.Reason = member, text("the last stop")
			leave.Members = append(leave.Members, one)
			c.ask(leave, version)
		}
	}
	member, generation := join(c, "passengers", 9)
	sync(c, "passengers", member, generation, 5)
	c.each(8, 0, 10, func(version int16) kmsg.Request {
		request := kmsg.NewPtrOffsetCommitRequest()
		request.Group, request.MemberID, request.Generation, request.RetentionTimeMillis = "passengers", member, generation, -1
		one := kmsg.NewOffsetCommitRequestTopic()
		one.Topic, one.TopicID = topic, c.topicID
		partition := kmsg.NewOffsetCommitRequestTopicPartition()
		partition.Offset, partition.Metadata = int64(version), text("seat 12")
		one.Partitions = append(one.Partitions, partition)
		request.Topics = append(request.Topics, one)
		return request
	})
	c.each(9, 0, 10, func(version int16) kmsg.Request {
		request := kmsg.NewPtrOffsetFetchRequest()
		request.Group = "passengers"
		one := kmsg.NewOffsetFetchRequestTopic()
		one.Topic, one.Partitions = topic, []int32{0}
		request.Topics = append(request.Topics, one)
		group := kmsg.NewOffsetFetchRequestGroup()
		group.Group, group.MemberEpoch = "passengers", -1
		inside := kmsg.NewOffsetFetchRequestGroupTopic()
		inside.Topic, inside.TopicID, inside.Partitions = topic, c.topicID, []int32{0}
		group.Topics = append(group.Topics, inside)
		request.Groups = append(request.Groups, group)
		return request
	})
	c.each(15, 0, 6, func(int16) kmsg.Request {
		request := kmsg.NewPtrDescribeGroupsRequest()
		request.Groups = []string{"passengers", "no-such-group"}
		return request
	})
	c.each(16, 0, 5, func(int16) kmsg.Request { return kmsg.NewPtrListGroupsRequest() })
	c.each(47, 0, 0, func(int16) kmsg.Request {
		request := kmsg.NewPtrOffsetDeleteRequest()
		request.Group = "passengers"
		one := kmsg.NewOffsetDeleteRequestTopic()
		one.Topic = topic
		one.Partitions = append(one.Partitions, kmsg.NewOffsetDeleteRequestTopicPartition())
		request.Topics = append(request.Topics, one)
		return request
	})
	c.each(42, 0, 2, func(version int16) kmsg.Request {
		request := kmsg.NewPtrDeleteGroupsRequest()
		request.Groups = []string{fmt.Sprintf("passengers-%d", version), "passengers"}
		return request
	})
}

// transactions goes through a whole transaction in each version of its requests.
func transactions(c *conn) {
	find := kmsg.NewPtrFindCoordinatorRequest()
	find.CoordinatorKey, find.CoordinatorType, find.CoordinatorKeys = "ticket-office", 1, []string{"ticket-office"}
	c.ask(find, 4)
	time.Sleep(2 * time.Second)
	for version := int16(0); version <= 5; version++ {
		transaction(c, fmt.Sprintf("ticket-office-%d", version), version)
	}
	c.each(65, 0, 0, func(int16) kmsg.Request {
		request := kmsg.NewPtrDescribeTransactionsRequest()
		request.TransactionalIDs = []string{"ticket-office-0", "no-such-office"}
		return request
	})
	c.each(66, 0, 2, func(int16) kmsg.Request {
		request := kmsg.NewPtrListTransactionsRequest()
		request.TransactionalIDPattern, request.DurationFilterMillis = text("ticket.*"), -1
		return request
	})
}

func transaction(c *conn, id string, version int16) {
	open := kmsg.NewPtrInitProducerIDRequest()
	open.TransactionalID, open.TransactionTimeoutMillis = text(id), 30000
	opened := c.ask(open, min(version, c.versions[22][1])).(*kmsg.InitProducerIDResponse)
	producer, epoch := opened.ProducerID, opened.ProducerEpoch
	if version <= 3 {
		add := kmsg.NewPtrAddPartitionsToTxnRequest()
		add.TransactionalID, add.ProducerID, add.ProducerEpoch = id, producer, epoch
		one := kmsg.NewAddPartitionsToTxnRequestTopic()
		one.Topic, one.Partitions = topic, []int32{0}
		add.Topics = append(add.Topics, one)
		c.ask(add, version)
	}
	if version <= 4 {
		add := kmsg.NewPtrAddOffsetsToTxnRequest()
		add.TransactionalID, add.ProducerID, add.ProducerEpoch, add.Group = id, producer, epoch, "passengers"
		c.ask(add, version)
	}
	if c.has(28, version) {
		commit := kmsg.NewPtrTxnOffsetCommitRequest()
		commit.TransactionalID, commit.Group, commit.ProducerID, commit.ProducerEpoch = id, "passengers", producer, epoch
		one := kmsg.NewTxnOffsetCommitRequestTopic()
		one.Topic, one.TopicID = topic, c.topicID
		partition := kmsg.NewTxnOffsetCommitRequestTopicPartition()
		partition.Offset = int64(version)
		one.Partitions = append(one.Partitions, partition)
		commit.Topics = append(commit.Topics, one)
		c.ask(commit, version)
	}
	if c.has(26, version) {
		end := kmsg.NewPtrEndTxnRequest()
		end.TransactionalID, end.ProducerID, end.ProducerEpoch, end.Commit = id, producer, epoch, version%2 == 0
		c.ask(end, version)
	}
}

// newGroups asks for what groups of the newer protocols have, as a member that comes and goes.
func newGroups(c *conn) {
	c.each(68, 0, 1, func(version int16) kmsg.Request {
		request := kmsg.NewPtrConsumerGroupHeartbeatRequest()
		request.Group, request.MemberID = "commuters", fmt.Sprintf("commuter-%d", version)
		if version == 0 {
			request.MemberID = ""
		}
		request.RebalanceTimeoutMillis, request.SubscribedTopicNames = 5000, []string{topic}
		request.Topics = []kmsg.ConsumerGroupHeartbeatRequestTopic{}
		return request
	})
	c.each(69, 0, 1, func(int16) kmsg.Request {
		request := kmsg.NewPtrConsumerGroupDescribeRequest()
		request.Groups = []string{"commuters", "no-such-group"}
		return request
	})
	streams(c)
	c.each(71, 0, 0, func(int16) kmsg.Request { return kmsg.NewPtrGetTelemetrySubscriptionsRequest() })
	c.each(77, 0, 1, func(int16) kmsg.Request {
		request := kmsg.NewPtrShareGroupDescribeRequest()
		request.GroupIDs = []string{"no-such-group"}
		return request
	})
	c.each(90, 0, 1, func(int16) kmsg.Request {
		request := kmsg.NewPtrDescribeShareGroupOffsetsRequest()
		one := kmsg.NewDescribeShareGroupOffsetsRequestGroup()
		one.GroupID = "no-such-group"
		request.Groups = append(request.Groups, one)
		return request
	})
}

// streams makes the client the member of a streams group and says what its topology looks like.
func streams(c *conn) {
	c.each(88, 0, 1, func(version int16) kmsg.Request {
		request := kmsg.NewPtrStreamsGroupHeartbeatRequest()
		request.Group, request.MemberID = fmt.Sprintf("planners-%d", version), fmt.Sprintf("planner-%d", version)
		request.RebalanceTimeoutMillis, request.ProcessID = 5000, text("process-1")
		request.UserEndpoint = &kmsg.StreamsGroupHeartbeatRequestUserEndpoint{Host: "planner.test", Port: 7001}
		tag := kmsg.NewStreamsGroupHeartbeatRequestClientTag()
		tag.Key, tag.Value = "zone", "north"
		request.ClientTags = append(request.ClientTags, tag)
		subtopology := kmsg.NewStreamsGroupHeartbeatRequestTopologySubtopology()
		subtopology.SubtopologyID, subtopology.SourceTopics = "0", []string{topic}
		topology := kmsg.NewStreamsGroupHeartbeatRequestTopology()
		topology.Epoch, topology.Subtopologies = 1, append(topology.Subtopologies, subtopology)
		request.Topology = &topology
		request.ActiveTasks, request.StandbyTasks, request.WarmupTasks = []kmsg.TaskIDs{}, []kmsg.TaskIDs{}, []kmsg.TaskIDs{}
		return request
	})
	c.each(93, 0, 0, func(int16) kmsg.Request {
		request := kmsg.NewPtrStreamsGroupTopologyDescriptionUpdateRequest()
		request.Group, request.MemberID, request.TopologyEpoch = "planners-1", "planner-1", 1
		source := kmsg.NewTopologyDescriptionNode()
		source.Name, source.NodeType, source.SourceTopics = "departures", 1, []string{topic}
		source.Successors = []string{"printer"}
		printer := kmsg.NewTopologyDescriptionNode()
		printer.Name, printer.NodeType, printer.Stores = "printer", 2, []string{"printed"}
		subtopology := kmsg.NewTopologyDescriptionSubtopology()
		subtopology.SubtopologyID, subtopology.Nodes = "0", append(subtopology.Nodes, source, printer)
		request.TopologyDescription.Subtopologies = append(request.TopologyDescription.Subtopologies, subtopology)
		return request
	})
	c.each(89, 0, 1, func(version int16) kmsg.Request {
		request := kmsg.NewPtrStreamsGroupDescribeRequest()
		request.Groups, request.IncludeTopologyDescription = []string{"planners-1", "no-such-group"}, version == 1
		return request
	})
}
