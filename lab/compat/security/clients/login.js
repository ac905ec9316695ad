// Logs in once for each line of standard input and writes one record: `mechanism TAB user TAB password TAB port TAB protocol TAB authority TAB certificate TAB key` in, a line of what came of it out.
const { Kafka, logLevel } = require('kafkajs');
const fs = require('fs');
const readline = require('readline');

async function attempt(mechanism, username, password, port, protocol, authority, certificate, key) {
  const read = (path) => (path ? fs.readFileSync(path) : undefined);
  const kafka = new Kafka({
    brokers: [`127.0.0.1:${port}`],
    sasl: mechanism === 'OAUTHBEARER' ? { mechanism: 'oauthbearer', oauthBearerProvider: async () => ({ value: fs.readFileSync(password, 'utf8') }) } : mechanism ? { mechanism: mechanism.toLowerCase(), username, password } : undefined,
    ssl: protocol.endsWith('SSL') ? { ca: [read(authority)], cert: read(certificate), key: read(key) } : undefined,
    logLevel: logLevel.NOTHING,
    retry: { retries: 2 },
  });
  const producer = kafka.producer({ allowAutoTopicCreation: false });
  try {
    await producer.connect();
    const until = Date.now() + (username === 'held' ? 8000 : 0);
    do {
      await producer.send({ topic: 'logins', messages: [{ value: username }] });
      await new Promise((next) => setTimeout(next, until > Date.now() ? 200 : 0));
    } while (Date.now() < until);
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
