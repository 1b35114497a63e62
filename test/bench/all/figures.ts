/** The benchmarks of `npm run bench`, with options that make each end within a minute or so, and the figures that its table has. */

export interface Figure {
  readonly work: string;
  /** Where the figure is in the benchmark's last line. */
  readonly at: readonly string[];
  readonly unit: string;
  /** What the figure should be. Empty: nothing was set. */
  readonly aim: string;
}

export interface Bench {
  readonly name: string;
  /** As on the command line. */
  readonly options: string;
  readonly figures: readonly Figure[];
}

/** The rows of a table: the work | the place of its figure, with dots | the unit | the aim, if there is one. */
const figures = (table: string): readonly Figure[] =>
  table
    .trim()
    .split("\n")
    .map((row) => row.split("|").map((cell) => cell.trim()))
    .map(([work = "", at = "", unit = "", aim = ""]) => ({
      work,
      at: at.split("."),
      unit,
      aim,
    }));

export const BENCHES: readonly Bench[] = [
  {
    name: "reads",
    options: "--rounds 2 --sessions 20000 --fires 100000",
    figures: figures(`
\`GET\` of a session, rate beside a bare server with the same selects | to_bare.session.rate.0 | × | ≥ 0.7
a list of 50 sessions, rate beside a bare server with the same selects | to_bare.page.rate.0 | × | ≥ 0.8
a page in the middle of many fires, CPU beside one of few | grown.fires, many, middle.to_few.cpu.0 | ×
`),
  },
  {
    name: "webhook",
    options: "--rounds 2 --seconds 2 --connections 64",
    figures: figures(`
a webhook, rate beside a bare receiver with one insert | measured.0.ratios.rate_to_bare | × | ≥ 1.2
a webhook, rate beside pgbench's inserts | measured.0.ratios.rate_to_inserts | × | ≥ 0.8
a webhook, p99 beside the bare receiver | measured.0.ratios.p99_to_bare | × | < 1
a webhook, p99 beside pgbench's inserts | measured.0.ratios.p99_to_inserts | ×
a webhook that starts a session, rate beside the bare receiver | measured.0.ratios.starting_rate_to_bare | ×
a webhook, CPU with Postgres beside the bare receiver | measured.0.ratios.cpu_with_postgres_to_bare | ×
`),
  },
  {
    name: "boot",
    options: "--boots 5 --providers local --pool 0 --limits usual",
    figures: figures(`
accepted to PID 1 of the sandbox | providers.local.cold.ms_since_accepted.pid1 | ms | ≤ 60
accepted to the start of the runtime's process | providers.local.cold.ms_since_accepted.runtime_started | ms | ≤ 110
accepted to running, more than the longer of a bare clone and a bare runtime | providers.local.cold.over_the_longer_one_ms | ms | ≤ 100
accepted to running in a sandbox that waited, p50 | providers.local.warm_ms.running_p50 | ms | ≤ 100
the same, longest | providers.local.warm_ms.running_p95 | ms | ≤ 250
the runtime's first answer there, p50 | providers.local.warm_ms.first_answer_p50 | ms | ≤ 400
the same, longest | providers.local.warm_ms.first_answer_p95 | ms | ≤ 800
one sandbox that waits, memory (PSS) | providers.local.idle_warm.pss_mib | MiB
\`GET\` of a session while 32 boot, with the usual limit of boots at once, longest | crowd.service.max_ms | ms | ≤ 50
`),
  },
  {
    name: "events",
    options: "--rounds 2 --commits 10 --window-s 6",
    figures: figures(`
1,000 readers of a project at rest, part of a core with Postgres | rest.ours.readers_percent | % | ≤ 1
a commit at 1,000 readers, p99 | ours.p99_ms.1 | ms | ≤ 250
the same at a bare server of events | bare.p99_ms.1 | ms
`),
  },
  {
    name: "conversation",
    options: "--counts 50 --tokens 15 --readers 100 --sessions 0 --idle-readers 0",
    figures: figures(`
a token to the browser's event, 50 sessions, more than a bare server at p50 | twins.streams.50.more_p50_ms.1 | ms | ≤ 30
the same at p99 | twins.streams.50.more_p99_ms.1 | ms | ≤ 150
`),
  },
  {
    name: "page",
    options: "--parts size,views,events --sessions 20 --seconds 6",
    figures: figures(`
the page's first load, compressed | size.gzippedKb | kB | ≤ 130
first view in an empty browser | views.first.median | ms | ≤ 1000
change of page, data at hand | views.changeAgain.median | ms | ≤ 100
a message on the page after its commit, p99 | events.said.p99 | ms | ≤ 300
a new session in the list after its record, p99 | events.listed.sinceRecord.p99 | ms | ≤ 300
`),
  },
  {
    name: "git",
    options: "--rounds 1 --percent 2 --branches 32",
    figures: figures(`
clone of the repository "small", speed beside a plain clone from disk | clones.small.speed_to_disk | ×
clone of the repository "large", speed beside a plain clone from disk | clones.large.speed_to_disk | ×
session branches, 8 at once, rate beside \`git update-ref\` | branches_at_once.8.rate_to_durable | ×
`),
  },
  {
    name: "scheduler",
    options: "--counts 1000000 --ticks 20",
    figures: figures(`
a million cron triggers, resident memory of their process in all | held.0.rss_mb | MB | ≤ 300
`),
  },
  {
    name: "executor",
    options: "--rounds 1",
    figures: figures(`
\`tools/list\` with 20 connectors of 100 tools, p99 | list_p99_ms | ms | ≤ 20
a tool's call, more than the server's own time at p50 | mcp_added_ms | ms | ≤ 15
`),
  },
  {
    name: "model-calls",
    options: "--rounds 1",
    figures: figures(`
a short call of a model through the service, more than without it at p50 | short_apart_ms.more.1 | ms | ≤ 1
`),
  },
  {
    name: "notifications",
    options: "--seconds 3",
    figures: figures(`
outbound events written, to 50 receivers of which ten hang | events_per_second | a second | 1000
`),
  },
  {
    name: "revocations",
    options: "--tries 20",
    figures: figures(`
a revoked token: everything at the other node ended within 1 s | token.within | of 10 | 10
a lost role: everything at the other node ended within 1 s | role.within | of 10 | 10
`),
  },
  {
    name: "traces",
    options: "--rounds 2 --seconds 2",
    figures: figures(`
a webhook's CPU with traces, beside without | webhook.traces.median | × | ≤ 1.1
a session's start, CPU with traces, beside without | session.traces.median | × | ≤ 1.1
`),
  },
];
