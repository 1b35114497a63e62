/**
 * Time zones: the valid names (threats.md C09), and the offset at each instant. The rules come from the runtime's own
 * copy of the IANA database, whose version is `process.versions.tz` (C10: nodes of one installation share a runtime).
 */
import { BoundedMap } from "../../ground/bounded-map.ts";

/**
 * Names of the IANA database (2025b) that `Intl.supportedValuesOf("timeZone")` omits, since it lists one name for each
 * zone. `Intl` itself cannot decide: it accepts any letter case, and also names that IANA does not have, such as AST.
 */
const LINK_NAMES: readonly (readonly [area: string, names: string])[] = [
  [
    "",
    "CET CST6CDT Cuba EET EST EST5EDT Egypt Eire GB GB-Eire GMT GMT+0 GMT-0 GMT0 Greenwich HST Hongkong Iceland Iran Israel Jamaica Japan Kwajalein Libya MET MST MST7MDT NZ NZ-CHAT Navajo PRC PST8PDT Poland Portugal ROC ROK Singapore Turkey UCT UTC Universal W-SU WET Zulu",
  ],
  ["Africa", "Asmara Timbuktu"],
  [
    "America",
    "Argentina/Buenos_Aires Argentina/Catamarca Argentina/ComodRivadavia Argentina/Cordoba Argentina/Jujuy Argentina/Mendoza Atikokan Atka Ensenada Fort_Wayne Indiana/Indianapolis Kentucky/Louisville Knox_IN Montreal Nipigon Nuuk Pangnirtung Porto_Acre Rainy_River Rosario Santa_Isabel Shiprock Thunder_Bay Virgin Yellowknife",
  ],
  ["Antarctica", "South_Pole"],
  [
    "Asia",
    "Ashkhabad Choibalsan Chongqing Chungking Dacca Harbin Ho_Chi_Minh Istanbul Kashgar Kathmandu Kolkata Macao Tel_Aviv Thimbu Ujung_Pandang Ulan_Bator Yangon",
  ],
  ["Atlantic", "Faroe Jan_Mayen"],
  ["Australia", "ACT Canberra Currie LHI NSW North Queensland South Tasmania Victoria West Yancowinna"],
  ["Brazil", "Acre DeNoronha East West"],
  ["Canada", "Atlantic Central Eastern Mountain Newfoundland Pacific Saskatchewan Yukon"],
  ["Chile", "Continental EasterIsland"],
  [
    "Etc",
    "GMT GMT+0 GMT+1 GMT+10 GMT+11 GMT+12 GMT+2 GMT+3 GMT+4 GMT+5 GMT+6 GMT+7 GMT+8 GMT+9 GMT-0 GMT-1 GMT-10 GMT-11 GMT-12 GMT-13 GMT-14 GMT-2 GMT-3 GMT-4 GMT-5 GMT-6 GMT-7 GMT-8 GMT-9 GMT0 Greenwich UCT UTC Universal Zulu",
  ],
  ["Europe", "Belfast Kyiv Nicosia Tiraspol Uzhgorod Zaporozhye"],
  ["Mexico", "BajaNorte BajaSur General"],
  ["Pacific", "Chuuk Johnston Kanton Pohnpei Samoa Yap"],
  [
    "US",
    "Alaska Aleutian Arizona Central East-Indiana Eastern Hawaii Indiana-Starke Michigan Mountain Pacific Samoa",
  ],
];

/** All names that this runtime may know. `isZoneName` says which of them it does know. */
export const zoneNames: ReadonlySet<string> = new Set([
  ...Intl.supportedValuesOf("timeZone"),
  ...LINK_NAMES.flatMap(([area, names]) =>
    names.split(" ").map((name) => (area === "" ? name : `${area}/${name}`)),
  ),
]);

/** Whether a text is an IANA name in its exact case, including links such as EST5EDT. Offsets are not names. */
export const isZoneName = (text: string): boolean => zoneNames.has(text) && zoneFormatter(text) !== null;

/** A period, in milliseconds since 1970, in which a zone's offset stays the same. */
export interface ZoneSegment {
  readonly startMs: number;
  /** Exclusive. The next segment may have the same offset, because segments also end with the year. */
  readonly endMs: number;
  /** Local time minus UTC, in milliseconds. */
  readonly offsetMs: number;
}

const DAY_MS = 86_400_000;
/**
 * How many years are kept for each zone. A schedule needs this year and the next; a rare one needs forty years ahead.
 */
const YEARS_KEPT = 128;

const formatters = new Map<string, Intl.DateTimeFormat | null>();
const segments = new Map<string, BoundedMap<number, readonly ZoneSegment[]>>();

const zoneFormatter = (zone: string): Intl.DateTimeFormat | null => {
  const cachedFormatter = formatters.get(zone);
  if (cachedFormatter !== undefined) return cachedFormatter;
  let formatter: Intl.DateTimeFormat | null = null;
  try {
    formatter = new Intl.DateTimeFormat("en-US", { timeZone: zone, timeZoneName: "longOffset" });
  } catch {
    // A name in the list that this runtime's database lacks.
  }
  formatters.set(zone, formatter);
  return formatter;
};

/** The segment that contains an instant. @throws RangeError for a zone that does not pass `isZoneName`. */
export const segmentAt = (zone: string, atMs: number): ZoneSegment => {
  const year = new Date(atMs).getUTCFullYear();
  const segment = zoneSegments(zone, year).find(({ endMs }) => atMs < endMs);
  if (segment === undefined) throw new RangeError(`${atMs} is no instant of a calendar`);
  return segment;
};

const zoneSegments = (zone: string, year: number): readonly ZoneSegment[] => {
  let years = segments.get(zone);
  if (years === undefined) segments.set(zone, (years = new BoundedMap(YEARS_KEPT)));
  const cachedSegments = years.get(year);
  if (cachedSegments !== undefined) return cachedSegments;
  const yearSegments = findSegments(zone, Date.UTC(year, 0), Date.UTC(year + 1, 0));
  years.set(year, yearSegments);
  return yearSegments;
};

/**
 * Compares the offsets of consecutive days. Between two days that differ, finds the exact millisecond of the change.
 */
const findSegments = (zone: string, fromMs: number, toMs: number): readonly ZoneSegment[] => {
  const newSegments: ZoneSegment[] = [];
  let startMs = fromMs;
  let offsetMs = offsetAt(zone, fromMs);
  for (let dayMs = fromMs; dayMs < toMs; dayMs += DAY_MS) {
    const next = offsetAt(zone, dayMs + DAY_MS);
    if (next !== offsetMs) {
      const changeMs = findChange(zone, dayMs, dayMs + DAY_MS);
      newSegments.push({ startMs, endMs: changeMs, offsetMs });
      startMs = changeMs;
      offsetMs = next;
    }
  }
  if (startMs < toMs) newSegments.push({ startMs, endMs: toMs, offsetMs });
  return newSegments;
};

/** The first millisecond, by bisection, at which the offset differs from that of `beforeMs`. */
const findChange = (zone: string, beforeMs: number, afterMs: number): number => {
  const offset = offsetAt(zone, beforeMs);
  let [low, high] = [beforeMs, afterMs];
  while (high - low > 1) {
    const middle = Math.floor((low + high) / 2);
    if (offsetAt(zone, middle) === offset) low = middle;
    else high = middle;
  }
  return high;
};

const offsetAt = (zone: string, atMs: number): number => {
  const text = zoneFormatter(zone)?.format(atMs);
  const [all, sign, hours, minutes, seconds] =
    /GMT(?:([+-])(\d\d):(\d\d)(?::(\d\d))?)?$/.exec(text ?? "") ?? [];
  if (all === undefined) throw new RangeError(`${zone} is not a time zone`);
  const size = Number(hours ?? 0) * 3600 + Number(minutes ?? 0) * 60 + Number(seconds ?? 0);
  return (sign === "-" ? -size : size) * 1000;
};
