// KafkaJS: produce with and without gzip, read in a group, ask for what is not there.
//
// Usage: kafkajs.js BOOTSTRAP TOPIC
const { Kafka, CompressionTypes, logLevel } = require('kafkajs')

const [bootstrap, topic] = process.argv.slice(2)
const EACH = 5

function connect(clientId) {
  return new Kafka({ clientId, brokers: [bootstrap], logLevel: logLevel.NOTHING })
}

async function main() {
  const producer = connect('postbox').producer()
  await producer.connect()
  for (const compression of [CompressionTypes.None, CompressionTypes.GZIP]) {
    const messages = Array.from({ length: EACH }, (_, i) => ({
      key: `letter-${i}`,
      value: JSON.stringify({ letter: i, stamp: 'ship' }),
      headers: { priority: i % 2 ? 'A' : 'B' },
    }))
    await producer.send({ topic, compression, messages })
  }
  await producer.disconnect()

  const consumer = connect('sorter').consumer({ groupId: 'sorter', maxWaitTimeInMs: 200 })
  await consumer.connect()
  await consumer.subscribe({ topics: [topic], fromBeginning: true })
  let left = 2 * EACH
  await new Promise((resolve) => {
    consumer.run({
      eachMessage: async () => {
        left -= 1
        if (left === 0) resolve()
      },
    })
  })
  await consumer.disconnect()

  const admin = connect('postmaster').admin()
  await admin.connect()
  await admin.deleteTopics({ topics: ['no-such-topic'], timeout: 2000 }).catch((error) => console.log(error.message))
  console.log(await admin.fetchTopicOffsets(topic))
  await admin.disconnect()
}

main()
