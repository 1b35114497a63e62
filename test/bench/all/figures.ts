/** The benchmarks of `npm run bench`, with options that make each end within a minute or so, and the figures that its table has. */

export interface Figure {
  readonly work: string;
  /** Where the figure is in the benchmark's last line. */
  readonly at: readonly (string | number)[];
  readonly unit: "×" | "%" | "ms" | "µs" | "kB" | "MB" | "MiB" | "of 10" | "a second";
  /** What the figure should be. Absent: nothing was set. */
  readonly aim?: string;
}

export interface Bench {
  readonly name: string;
  /** As on the command line. */
  readonly options: string;
  readonly figures: readonly Figure[];
}

const read = (work: string, of: string, aim: string): Figure => ({
  work: `${work}, rate beside a bare server with the same selects`,
  at: ["to_bare", of, "rate", 0],
  unit: "×",
  aim,
});

const streamed = (count: string): readonly Figure[] => [
  {
    work: `a token to the browser's event, ${count} sessions, more than a bare server at p50`,
    at: ["twins", "streams", count, "more_p50_ms", 1],
    unit: "ms",
    aim: "≤ 30",
  },
  {
    work: `the same at p99`,
    at: ["twins", "streams", count, "more_p99_ms", 1],
    unit: "ms",
    ...(count === "50" && { aim: "≤ 150" }),
  },
];

const cold = (work: string, step: string, aim: string): Figure => ({
  work,
  at: ["providers", "local", "cold", "ms_since_accepted", step],
  unit: "ms",
  aim,
});

const warm = (work: string, figure: string, aim: string): Figure => ({
  work,
  at: ["providers", "local", "warm_ms", figure],
  unit: "ms",
  aim,
});

const clone = (shape: string): Figure => ({
  work: `clone of the repository "${shape}", speed beside a plain clone from disk`,
  at: ["clones", shape, "speed_to_disk"],
  unit: "×",
});

export const BENCHES: readonly Bench[] = [
  {
    name: "reads",
    options: "--rounds 2 --sessions 20000 --fires 100000",
    figures: [
      read("`GET` of a session", "session", "≥ 0.7"),
      read("a list of 50 sessions", "page", "≥ 0.8"),
      {
        work: "a page in the middle of many fires, CPU beside one of few",
        at: ["grown", "fires, many, middle", "to_few", "cpu", 0],
        unit: "×",
      },
    ],
  },
  {
    name: "webhook",
    options: "--rounds 2 --seconds 2 --connections 64",
    figures: [
      {
        work: "a webhook, rate beside a bare receiver with one insert",
        at: ["measured", 0, "ratios", "rate_to_bare"],
        unit: "×",
        aim: "≥ 1.2",
      },
      {
        work: "a webhook, rate beside pgbench's inserts",
        at: ["measured", 0, "ratios", "rate_to_inserts"],
        unit: "×",
        aim: "≥ 0.8",
      },
      {
        work: "a webhook, p99 beside the bare receiver",
        at: ["measured", 0, "ratios", "p99_to_bare"],
        unit: "×",
        aim: "< 1",
      },
      {
        work: "a webhook, p99 beside pgbench's inserts",
        at: ["measured", 0, "ratios", "p99_to_inserts"],
        unit: "×",
      },
      {
        work: "a webhook that starts a session, rate beside the bare receiver",
        at: ["measured", 0, "ratios", "starting_rate_to_bare"],
        unit: "×",
      },
      {
        work: "a webhook, CPU with Postgres beside the bare receiver",
        at: ["measured", 0, "ratios", "cpu_with_postgres_to_bare"],
        unit: "×",
      },
    ],
  },
  {
    name: "boot",
    options: "--boots 5 --providers local --pool 0 --limits usual",
    figures: [
      cold("accepted to PID 1 of the sandbox", "pid1", "≤ 60"),
      cold("accepted to the start of the runtime's process", "runtime_started", "≤ 110"),
      {
        work: "accepted to running, more than the longer of a bare clone and a bare runtime",
        at: ["providers", "local", "cold", "over_the_longer_one_ms"],
        unit: "ms",
        aim: "≤ 100",
      },
      warm("accepted to running in a sandbox that waited, p50", "running_p50", "≤ 100"),
      warm("the same, longest", "running_p95", "≤ 250"),
      warm("the runtime's first answer there, p50", "first_answer_p50", "≤ 400"),
      warm("the same, longest", "first_answer_p95", "≤ 800"),
      {
        work: "one sandbox that waits, memory (PSS)",
        at: ["providers", "local", "idle_warm", "pss_mib"],
        unit: "MiB",
      },
      {
        work: "`GET` of a session while 32 boot, with the usual limit of boots at once, longest",
        at: ["crowd", "service", "max_ms"],
        unit: "ms",
        aim: "≤ 50",
      },
    ],
  },
  {
    name: "events",
    options: "--rounds 2 --commits 10 --window-s 6",
    figures: [
      {
        work: "1,000 readers of a project at rest, part of a core with Postgres",
        at: ["rest", "ours", "readers_percent"],
        unit: "%",
        aim: "≤ 1",
      },
      {
        work: "a commit at 1,000 readers, p99",
        at: ["ours", "p99_ms", 1],
        unit: "ms",
        aim: "≤ 250",
      },
      { work: "the same at a bare server of events", at: ["bare", "p99_ms", 1], unit: "ms" },
    ],
  },
  {
    name: "conversation",
    options: "--counts 50 --tokens 15 --readers 100 --sessions 0 --idle-readers 0",
    figures: streamed("50"),
  },
  {
    name: "page",
    options: "--parts size,views,events --sessions 20 --seconds 6",
    figures: [
      { work: "the page's first load, compressed", at: ["size", "gzippedKb"], unit: "kB", aim: "≤ 130" },
      {
        work: "first view in an empty browser",
        at: ["views", "first", "median"],
        unit: "ms",
        aim: "≤ 1000",
      },
      {
        work: "change of page, data at hand",
        at: ["views", "changeAgain", "median"],
        unit: "ms",
        aim: "≤ 100",
      },
      {
        work: "a message on the page after its commit, p99",
        at: ["events", "said", "p99"],
        unit: "ms",
        aim: "≤ 300",
      },
      {
        work: "a new session in the list after its record, p99",
        at: ["events", "listed", "sinceRecord", "p99"],
        unit: "ms",
        aim: "≤ 300",
      },
    ],
  },
  {
    name: "git",
    options: "--rounds 1 --percent 2 --branches 32",
    figures: [
      clone("small"),
      clone("large"),
      {
        work: "session branches, 8 at once, rate beside `git update-ref`",
        at: ["branches_at_once", "8", "rate_to_durable"],
        unit: "×",
      },
    ],
  },
  {
    name: "scheduler",
    options: "--counts 1000000 --ticks 20",
    figures: [
      {
        work: "a million cron triggers, resident memory of their process in all",
        at: ["held", 0, "rss_mb"],
        unit: "MB",
        aim: "≤ 300",
      },
    ],
  },
  {
    name: "executor",
    options: "--rounds 1",
    figures: [
      {
        work: "`tools/list` with 20 connectors of 100 tools, p99",
        at: ["list_p99_ms"],
        unit: "ms",
        aim: "≤ 20",
      },
      {
        work: "a tool's call, more than the server's own time at p50",
        at: ["mcp_added_ms"],
        unit: "ms",
        aim: "≤ 15",
      },
    ],
  },
  {
    name: "model-calls",
    options: "--rounds 1",
    figures: [
      {
        work: "a short call of a model through the service, more than without it at p50",
        at: ["short_apart_ms", "more", 1],
        unit: "ms",
        aim: "≤ 1",
      },
    ],
  },
  {
    name: "notifications",
    options: "--seconds 3",
    figures: [
      {
        work: "outbound events written, to 50 receivers of which ten hang",
        at: ["events_per_second"],
        unit: "a second",
        aim: "1000",
      },
    ],
  },
  {
    name: "revocations",
    options: "--tries 20",
    figures: [
      {
        work: "a revoked token: everything at the other node ended within 1 s",
        at: ["token", "within"],
        unit: "of 10",
        aim: "10",
      },
      {
        work: "a lost role: everything at the other node ended within 1 s",
        at: ["role", "within"],
        unit: "of 10",
        aim: "10",
      },
    ],
  },
  {
    name: "traces",
    options: "--rounds 2 --seconds 2",
    figures: [
      {
        work: "a webhook's CPU with traces, beside without",
        at: ["webhook", "traces", "median"],
        unit: "×",
        aim: "≤ 1.1",
      },
      {
        work: "a session's start, CPU with traces, beside without",
        at: ["session", "traces", "median"],
        unit: "×",
        aim: "≤ 1.1",
      },
    ],
  },
];
