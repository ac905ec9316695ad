// Logs in once for each line of standard input and writes one record: `mechanism TAB user TAB password TAB port` in, a line of what came of it out.
const { Kafka, logLevel } = require('kafkajs');
const readline = require('readline');

async function attempt(mechanism, username, password, port) {
  const kafka = new Kafka({
    brokers: [`127.0.0.1:${port}`],
    sasl: { mechanism: mechanism.toLowerCase(), username, password },
    logLevel: logLevel.NOTHING,
    retry: { retries: 2 },
  });
  const producer = kafka.producer({ allowAutoTopicCreation: false });
  try {
    await producer.connect();
    await producer.send({ topic: 'logins', messages: [{ value: username }] });
    return 'ok';
  } catch (error) {
    return error.name === 'KafkaJSSASLAuthenticationError' ? 'login refused' : `other: ${error.name}`;
  } finally {
    await producer.disconnect().catch(() => {});
  }
}

(async () => {
  for await (const line of readline.createInterface({ input: process.stdin })) console.log(await attempt(...line.split('\t')));
})();
