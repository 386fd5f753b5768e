package main

import (
	"encoding/binary"
	"hash/crc32"
	"time"
)

// message is a message set of one message with magic 0 or 1.
func message(magic byte, value string) []byte {
	body := []byte{magic, 0}
	if magic == 1 {
		body = binary.BigEndian.AppendUint64(body, uint64(time.Now().UnixMilli()))
	}
	body = binary.BigEndian.AppendUint32(body, 0xffffffff) // no key
	body = binary.BigEndian.AppendUint32(body, uint32(len(value)))
	body = append(body, value...)
	set := make([]byte, 8)
	set = binary.BigEndian.AppendUint32(set, uint32(4+len(body)))
	set = binary.BigEndian.AppendUint32(set, crc32.ChecksumIEEE(body))
	return append(set, body...)
}

// batch is a record batch of one record; with a producer id it is part of a transaction.
func batch(value string, producer int64, epoch int16) []byte {
	record := []byte{0, 0, 0, 1} // attributes, deltas of time and offset, no key
	record = binary.AppendVarint(record, int64(len(value)))
	record = append(record, value...)
	record = append(record, 0) // no headers
	attributes, sequence := uint16(0), uint32(0xffffffff)
	if producer >= 0 {
		attributes, sequence = 0x10, 0
	}
	now := uint64(time.Now().UnixMilli())
	signed := binary.BigEndian.AppendUint16(nil, attributes)
	signed = binary.BigEndian.AppendUint32(signed, 0)
	signed = binary.BigEndian.AppendUint64(signed, now)
	signed = binary.BigEndian.AppendUint64(signed, now)
	signed = binary.BigEndian.AppendUint64(signed, uint64(producer))
	signed = binary.BigEndian.AppendUint16(signed, uint16(epoch))
	signed = binary.BigEndian.AppendUint32(signed, sequence)
	signed = binary.BigEndian.AppendUint32(signed, 1)
	signed = binary.AppendVarint(signed, int64(len(record)))
	signed = append(signed, record...)
	whole := make([]byte, 8)
	whole = binary.BigEndian.AppendUint32(whole, uint32(9+len(signed)))
	whole = binary.BigEndian.AppendUint32(whole, 0xffffffff) // the leader's epoch is the broker's to say
	whole = append(whole, 2)
	whole = binary.BigEndian.AppendUint32(whole, crc32.Checksum(signed, crc32.MakeTable(crc32.Castagnoli)))
	return append(whole, signed...)
}
