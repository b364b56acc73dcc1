// SPDX-License-Identifier: Apache-2.0
// Five questions, and the algorithm that the answers lead to, as a rules file.

const KEYS = ["[user]", "[client.ip/64]", "[org]", "[]"];

// `yaml`: what an answer puts into the rules file, "" for nothing of its own.
export const QUESTIONS = [
  { title: "What is scarce?", answers: ["Requests per time", "Requests at one time", "An allowance per month"],
    yaml: ["rate", "concurrency", "quota"] },
  { title: "Who has a limit of their own?", answers: ["Each user", "Each address", "Each organisation", "All share one"],
    yaml: KEYS.map((key) => `key: ${key}`) },
  { title: "Must the limit hold in every window, whatever the timing?", answers: ["About is enough", "Never one more"],
    yaml: ["", "sliding_log or strict: true"] },
  { title: "May a client that was quiet send a burst?", answers: ["No", "Yes, at once", "Yes, but they enter one by one"],
    yaml: ["", "token_bucket, burst", "leaky_bucket, queue: true"] },
  { title: "How large is the limit?", answers: ["Small, up to 100", "Large"], yaml: ["rate: 30/min", "rate: 6000/min"] },
];

const TITLES = {
  concurrency: "Concurrency", quota: "Quota, with a rate beside it", sliding_log: "Sliding log",
  strict: "Sliding window, strict", token_bucket: "Token bucket", leaky_queue: "Leaky bucket, as a queue",
  segments: "Sliding window with segments", two_counters: "Sliding window, the default",
};

// Whether an earlier answer makes a question pointless.
export function is_asked(question, answers) {
  if (question === 2 || question === 4) return answers[0] === 0;
  if (question === 3) return answers[0] === 0 && answers[2] === 0;
  return true;
}

function limit_lines(name, answers, lines) {
  return [`  - name: ${name}`, `    key: ${KEYS[answers[1]]}`, ...lines.map((line) => `    ${line}`)];
}

function rules(answers, lines, second) {
  return ["version: 1", "limits:", ...limit_lines("api", answers, lines),
    ...(second ? limit_lines(second.name, answers, second.lines) : [])].join("\n") + "\n";
}

// The answer to answers (an index for each question): the algorithm, why, and the rules file.
export function choose(answers) {
  const [scarce, , never, burst, large] = answers;
  const rate = large ? "6000/min" : "30/min", some = large ? 1000 : 10;
  const say = (name, reason, lines, second) => ({ name, title: TITLES[name], reason, yaml: rules(answers, lines, second) });
  if (scarce === 1)
    return say("concurrency", "A request holds something until it ends, such as a worker or a connection. Limit what is held. `life` ends the leases of clients that crash: make it longer than the longest request.",
      ["algorithm: concurrency", "limit: 10", "life: 30s"]);
  if (scarce === 2)
    return say("quota", "What is sold by the month is counted by the month. Beside it, a rate keeps a caller from using a month in a second.",
      ["quota: 10000/month", "rollover: 10%"], { name: "api-rate", lines: ["rate: 60/min"] });
  if (never && !large)
    return say("sliding_log", "The log keeps each admission for exactly one window, so never more than the limit passes. It takes 8 bytes a request, which is little where the limit is small.",
      ["algorithm: sliding_log", `rate: ${rate}`]);
  if (never)
    return say("strict", "The oldest segment counts in full, so never more than the limit passes, for a fraction of a log's memory. A request counts for up to a tenth longer than the window.",
      ["algorithm: sliding_window", "segments: 10", "strict: true", `rate: ${rate}`]);
  if (burst === 1)
    return say("token_bucket", "A bucket lets clients save up for a burst, and holds them to the rate after that. It has no borders, and the wait after a denial is short.",
      ["algorithm: token_bucket", `rate: ${rate}`, `burst: ${some}`]);
  if (burst === 2)
    return say("leaky_queue", "A queue lets a burst enter one by one, evenly spaced. The answer says how long the request waits; only a full queue denies.",
      ["algorithm: leaky_bucket", "queue: true", `rate: ${rate}`, `burst: ${some}`]);
  if (!large)
    return say("segments", "Segments keep a burst at a border from passing: the error is at most what one segment holds. They cost a few bytes a key.",
      ["algorithm: sliding_window", "segments: 10", `rate: ${rate}`]);
  return say("two_counters", "The default: two counters in 12 bytes a key, with no burst at the border of a window.",
    ["algorithm: sliding_window", `rate: ${rate}`]);
}
