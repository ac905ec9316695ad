// rhea, the AMQP library of Node.js. See PROTOCOL.md.
"use strict";

const rhea = require("rhea");

const [verb, host, port, username, password, ...words] = process.argv.slice(2);
const container = rhea.create_container();
const idle = verb === "idle" ? { idle_time_out: 2000 } : {};
const connection = container.connect({ host, port: Number(port), username, password, reconnect: false, ...idle });
let answer = {};

function end(more) {
  Object.assign(answer, more);
  connection.close();
}

function say() {
  // A pipe takes a long line in pieces.
  process.stdout.write(`${JSON.stringify(answer)}\n`, () => process.exit(0));
}

container.on("connection_close", say);
container.on("disconnected", () => {
  if (answer.connected === undefined) answer.connected = false;
  say();
});
container.on("connection_error", () => {});
container.on("error", () => {});
for (const kind of ["sender_error", "receiver_error"]) {
  container.on(kind, (context) => {
    const error = (context.sender || context.receiver).error;
    end({ refused: [error.condition] });
  });
}

const queue = (address) => ({ address, capabilities: ["queue"] });

function made(text, options) {
  const message = { body: text.padEnd(options.size || 0, "x"), durable: true };
  for (const [name, key] of [["id", "message_id"], ["subject", "subject"], ["group", "group_id"], ["ttl", "ttl"]]) {
    if (options[name] !== undefined) message[key] = options[name];
  }
  if (options.properties) message.application_properties = options.properties;
  return message;
}

function described(message) {
  const body = message.body;
  const text = Buffer.isBuffer(body) ? body.toString() : body.content ? body.content.toString() : body;
  const found = {
    length: text.length,
    count: message.delivery_count || 0,
    properties: message.application_properties || null,
    id: message.message_id === undefined ? null : message.message_id,
    subject: message.subject === undefined ? null : message.subject,
  };
  return text.length <= 100 ? { ...found, text } : found;
}

const verbs = {
  connect() {
    container.on("connection_open", () => end({ connected: true }));
  },

  put(address, texts, given) {
    const options = JSON.parse(given || "{}");
    const list = JSON.parse(texts);
    let next = 0;
    let done = 0;
    answer = { accepted: 0, refused: [] };
    const sender = connection.open_sender({ target: queue(address) });
    const settled = (why) => {
      if (why === undefined) answer.accepted += 1;
      else answer.refused.push(why);
      done += 1;
      if (done === list.length) end({});
    };
    sender.on("sendable", () => {
      while (sender.sendable() && next < list.length) sender.send(made(list[next++], options));
    });
    sender.on("accepted", () => settled());
    sender.on("rejected", (context) => settled((context.delivery.remote_state.error || { condition: "rejected" }).condition));
    sender.on("released", () => settled("released"));
  },

  get(address, count, outcome, given) {
    const options = JSON.parse(given || "{}");
    const number = Number(count);
    const wait = (options.wait || 3) * 1000;
    let granted = 0;
    let timer;
    answer = { got: [] };
    const source = { ...queue(address), ...(outcome === "browse" ? { distribution_mode: "copy" } : {}) };
    if (options.selector) source.filter = rhea.filter.selector(options.selector);
    const receiver = connection.open_receiver({ source, credit_window: 0, autoaccept: false, autosettle: false });
    const grant = (credit) => {
      granted += credit;
      receiver.add_credit(credit);
    };
    const finish = () => {
      clearTimeout(timer);
      if (!options.hold) return end({});
      console.log("holding");
      setTimeout(() => end({}), options.hold * 1000);
    };
    const watch = () => {
      clearTimeout(timer);
      timer = setTimeout(finish, wait);
    };
    receiver.on("receiver_open", () => {
      grant(Math.min(options.credit || number, number));
      watch();
    });
    receiver.on("message", (context) => {
      if (answer.got.length >= number) return context.delivery.release();
      answer.got.push(described(context.message));
      watch();
      if (options.pause) Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, options.pause * 1000);
      const delivery = context.delivery;
      if (outcome === "accept") delivery.accept();
      if (outcome === "release") delivery.release();
      if (outcome === "modify") delivery.modified({ delivery_failed: true });
      if (outcome === "reject") delivery.reject({ condition: "amqp:internal-error", description: "by the rig" });
      if (answer.got.length === number) finish();
      else if (granted < number && receiver.credit === 0) grant(Math.min(options.credit || 1, number - granted));
    });
  },

  idle(address, seconds) {
    answer = { accepted: 0, refused: [] };
    let begun = false;
    const sender = connection.open_sender({ target: queue(address) });
    sender.on("sendable", () => {
      if (begun) return;
      begun = true;
      sender.send({ body: "before" });
      setTimeout(() => sender.send({ body: "after" }), Number(seconds) * 1000);
    });
    sender.on("accepted", () => {
      answer.accepted += 1;
      if (answer.accepted === 2) end({});
    });
  },

  request(address) {
    const served = connection.open_receiver({ source: queue(address), autoaccept: true });
    served.on("message", (context) => {
      const asked = context.message;
      const answers = connection.open_sender(asked.reply_to);
      answers.once("sendable", () => answers.send({ body: `${asked.body}-pong`, correlation_id: asked.correlation_id }));
    });
    const replies = connection.open_receiver({ source: { dynamic: true }, autoaccept: true });
    replies.on("message", (context) => end({ reply: context.message.body }));
    replies.on("receiver_open", () => {
      const sender = connection.open_sender({ target: queue(address) });
      sender.once("sendable", () => {
        sender.send({ body: "ping", reply_to: replies.source.address, correlation_id: "c1", durable: true });
      });
    });
  },
};

verbs[verb](...words);
