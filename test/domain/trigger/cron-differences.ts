/**
 * Where our rule (api.md 4 "Cron") and croner's part, each with the reason: what is refused here and not there, and what is
 * due at another instant.
 */

/** The patterns of a list, of which each line and each `|` ends one. */
export const patternsOf = (list: string): readonly string[] =>
  list
    .trim()
    .split(/\n|\|/)
    .map((pattern) => pattern.trim());

interface Refused {
  readonly reason: string;
  readonly says: string;
  readonly patterns: readonly string[];
}

export const REFUSED_HERE: readonly Refused[] = [
  {
    reason: "a year is no field: exactly six are read [C03]",
    says: "This one has 7",
    patterns: patternsOf(`
  15 30 12 * * * 2025 | 0 0 12 1 1 * 2025-2027 | 0 0 0 1 1 * 2025 | 0 0 0 * * * 2025
  30 0 0 * * * 2025 | * * * * * * 2014 | 0 0 0 14W * FRI#L 2026 | 0 0 1 1 * * 2010-2015
  0 0 1 1 * * 2030 | 0 0 0 1 1 * 2024 | 0 0 0 1 1 * 2024-2026 | 0 0 0 1 1 * 2024-2030/2
  0 0 0 1 1 * 2024,2026,2028 | 0 0 0 1 1 * 1-9999/2 | 0 0 0 1 1 * 2027 | 0 0 0 1 1 * 2027-2029
  0 0 0 1 1 * 2027,2029 | 0 0 0 1 1 * 2026-2036/2 | 0 0 0 1 1 * * | 30 0 0 1 1 * 2027 | 0 0 0 1 1 * 1
  0 0 0 1 1 * 9999 | 0 0 0 1 1 * 5000 | 0 0 1 1 * * 9999 | 0 0 12 15 * +FRI 2027 | 0 0 12 1 1 * ?
  0 0 12 1 1 * *
`),
  },
  {
    reason: "@words hide which second and minute they mean, and libraries differ [C04]",
    says: "This one has 1",
    patterns: patternsOf(`
  @yearly | @annually | @monthly | @weekly | @daily | @midnight | @hourly | @YEARLY | @Yearly
`),
  },
  {
    reason: "? is read as any value, or as the moment of the start, depending on the library [C04]",
    says: "is not valid: use *,",
    patterns: patternsOf(`
  0 0 12 ? * * | 59 * ? ? ? ? | ? * ? ? ? ? | * * ? ? ? ? | * ? ? ? ? ? | ? * * * * * | 0 ? * * * *
  0 0 ? * * * | 0 0 12 1 ? * | 0 0 12 * * ? | ? ? ? ? ? ? | ? 30 * * * MON | 0 0 12 1-5 ? *
  0 ?/15 * * * * | 0 0 12 ? * ? | 0 12 1 * +? | 0 0 0 ? * * | 0 0 0 * ? * | 0 0 0 * * ?
`),
  },
  {
    reason: "# (the nth weekday) is known to some libraries only [C04]",
    says: "The weekday field",
    patterns: patternsOf(`
  0 0 0 * * 6#2 | 0 8 * * 6#1 | 0 0 0 * * MON#2 | 0 0 0 * * FRI#L | 0 0 * * MON#5 | 0 0 * 2 FRI#5
  0 0 * * FRI#L | 0 0 * * TUE#2 | 0 0 * * 0#1 | 0 0 * * MON#1 | 0 0 * * MON#2 | 0 0 * * MON#3
  0 0 * * MON#4 | 0 0 * * 1#1 | 0 0 * * 5#L | 0 0 0 * 2 SUN#L | 0 0 0 * 2 THU#L | 0 0 0 * 2 FRI#L
  0 0 0 * 2 THU-FRI#L | 0 0 0 * * SAT-SUN#L,SUN#1 | 0 0 0 * * SUN-MON#3,MON-TUE#1 | 0 0 * * fri#l
  0 0 * * 1#2
`),
  },
  {
    reason: "L (the last day) is known to some libraries only [C04]",
    says: "The day field",
    patterns: patternsOf(`
  0 0 0 L * * | 0 0 0 15,L * * | 0 0 12 L * * | 0 0 L * * | 0 0 L 2 * | 0 0 0 L 2 * | 0 0 l * *
  0 0 L 2 FRI#L
`),
  },
  {
    reason: "L (the last such weekday) is known to some libraries only [C04]",
    says: "The weekday field",
    patterns: patternsOf(`
  0 0 0 * * 6L | 0 0 * * MONL,FRIL | 0 0 * * FRIL | 0 0 * * MON-FRIL | 0 0 * * 6L | 0 0 * * fril
  0 0 * * 5l | 0 0 * * 5L
`),
  },
  {
    reason: "W (the nearest working day) is known to some libraries only [C04]",
    says: "The day field",
    patterns: patternsOf(`
  0 0 29W 2 * | 0 0 30W 2 * | 0 0 31W 4 * | 0 0 15W 1 * | 0 0 18W 1 * | 0 0 19W 1 * | 0 0 1W 6 *
  0 0 31W 8 * | 0 0 1W,15W 1 * | 0 0 LW * * | 0 0 LW 2 * | 0 0 LW 5 * | 0 0 LW 8 * | 0 0 31W * *
  0 0 31W 1 * | 0 0 0 15W * * | 0 0 1W 3 * | 0 12 15W * * | 0 12 19W 3 * | 0 12 1W * * | 0 12 31W * *
  0 0 0 15W 7 * | 0 0 0 19W 7 * | 0 0 0 20W 7 * | 0 0 0 1W 6 * | 0 0 0 31W 8 * | 0 0 0 15w 7 *
  0 0 lw * * | 0 0 Lw * * | 0 0 lW * *
`),
  },
  {
    reason: "+ (both day and weekday) is croner's own [C04]",
    says: "field",
    patterns: patternsOf(`
  0 0 0 15 * +MON | 0 0 13 * +FRI | 0 0 L * +FRI | 0 12 1 * +MON | 0 12 15 * +5 | 0 12 1 * +MON-FRI
  0 12 1 * +MON#1 | 0 12 1 * +*
`),
  },
  {
    reason: "a step has a range or * before it, also where croner is told to be sloppy",
    says: "use *,",
    patterns: ["/3 * * * * *", "* /10 * * * *"],
  },
  {
    reason:
      "a pattern that can never match is refused when it is read; croner reads it and finds nothing later [C01]",
    says: "never matches",
    patterns: ["0 0 31 2 *", "0 0 31 4 *"],
  },
];

/**
 * Patterns that are due at another instant, by the reason: pattern | zone | after | in croner | here. croner's instant is the one under
 * the option that its test sets, if it sets one.
 */
export const DUE_OTHERWISE: Readonly<Record<string, string>> = {
  "a fixed time in a gap fires at the gap's end, not as much later as it lies inside it [C11]": `
0 30 2 12 3 * | America/New_York | 2023-03-12T00:00:00Z | 2023-03-12T07:30:00Z | 2023-03-12T07:00:00Z
0 30 2 * * * | America/New_York | 2023-03-11T07:30:00Z | 2023-03-12T07:30:00Z | 2023-03-12T07:00:00Z
0 30 2 * * * | America/New_York | 2025-03-09T06:00:00Z | 2025-03-09T07:30:00Z | 2025-03-09T07:00:00Z
0 30 2 * * * | Europe/Berlin | 2023-03-25T01:30:00Z | 2023-03-26T01:30:00Z | 2023-03-26T01:00:00Z
0 30 1 * * * | Europe/London | 2025-03-30T00:00:00Z | 2025-03-30T01:30:00Z | 2025-03-30T01:00:00Z
`,
  "a wildcard hour runs on both passes of an overlap; croner leaves the second out [C12]": `
* * * * * | America/Los_Angeles | 2025-11-02T08:59:01Z | 2025-11-02T10:00:00Z | 2025-11-02T09:00:00Z
`,
  "the next instant is always later than the one it was asked for; here croner answers an earlier one [C14]": `
* * * * * | America/Los_Angeles | 2025-11-02T09:00:00Z | 2025-11-02T08:01:00Z | 2025-11-02T09:01:00Z
0 30 1 * * * | America/New_York | 2025-11-02T06:00:00Z | 2025-11-02T05:30:00Z | 2025-11-03T06:30:00Z
`,
  "either of day and weekday suffices, and no option makes it both [C07]": `
0 0 0 30 2 6 | UTC | 2021-10-12T22:00:00Z | nothing | 2022-02-05T00:00:00Z
0 0 0 1 11 4 | UTC | 2021-10-12T22:00:00Z | 2029-11-01T00:00:00Z | 2021-11-01T00:00:00Z
0 0 0 29 feb SAT | UTC | 2021-10-12T22:00:00Z | 2048-02-29T00:00:00Z | 2022-02-05T00:00:00Z
59 59 23 2 * 6 | UTC | 2022-02-17T00:00:00Z | 2022-04-02T23:59:59Z | 2022-02-19T23:59:59Z
0 12 1 * MON | UTC | 2026-11-20T06:30:15Z | 2027-02-01T12:00:00Z | 2026-11-23T12:00:00Z
`,
  "0 and 7 are Sunday and 6 is Saturday; no option counts from 1 [C06]": `
0 0 0 * * 1 | UTC | 2026-11-20T06:30:15Z | 2026-11-22T00:00:00Z | 2026-11-23T00:00:00Z
0 0 0 * * 2 | UTC | 2026-11-20T06:30:15Z | 2026-11-23T00:00:00Z | 2026-11-24T00:00:00Z
0 0 0 * * 3 | UTC | 2026-11-20T06:30:15Z | 2026-11-24T00:00:00Z | 2026-11-25T00:00:00Z
0 0 0 * * 4 | UTC | 2026-11-20T06:30:15Z | 2026-11-25T00:00:00Z | 2026-11-26T00:00:00Z
0 0 0 * * 5 | UTC | 2026-11-20T06:30:15Z | 2026-11-26T00:00:00Z | 2026-11-27T00:00:00Z
0 0 0 * * 6 | UTC | 2026-11-20T06:30:15Z | 2026-11-27T00:00:00Z | 2026-11-21T00:00:00Z
0 0 0 * * 7 | UTC | 2026-11-20T06:30:15Z | 2026-11-21T00:00:00Z | 2026-11-22T00:00:00Z
0 0 12 * * 1 | UTC | 2026-11-20T06:30:15Z | 2026-11-22T12:00:00Z | 2026-11-23T12:00:00Z
0 0 * * 1 | UTC | 2024-01-01T00:00:00Z | 2024-01-07T00:00:00Z | 2024-01-08T00:00:00Z
0 0 * * 7 | UTC | 2024-01-01T00:00:00Z | 2024-01-06T00:00:00Z | 2024-01-07T00:00:00Z
0 0 0 * * 2-6 | UTC | 2026-11-20T06:30:15Z | 2026-11-23T00:00:00Z | 2026-11-21T00:00:00Z
0 0 0 * * 1,7 | UTC | 2026-11-20T06:30:15Z | 2026-11-21T00:00:00Z | 2026-11-22T00:00:00Z
0 0 0 * * 1-7/2 | UTC | 2026-11-20T06:30:15Z | 2026-11-21T00:00:00Z | 2026-11-22T00:00:00Z
`,
};
