/**
 * Where the parts of a state machine's picture are. States are boxes, one below the other. Below each box are its ways out: a line for each
 * state that can follow, with the events' names on it. All lines to one state meet in one lane at the right, which ends in
 * that state's box. So no name covers another one, however wide the screen is.
 */
import type { Definition } from "./reading.ts";

/** The arrows from one state to another one. */
export interface Way {
  from: string;
  to: string;
  events: string[];
}

export const BOX = { width: 150, height: 32 };
/** The size of its text. The picture is scaled as a whole, so this is in its own units. */
export const TEXT = 12;
export const LINE = 16;
const GAP = 20;
const LANE = 14;
export const MARGIN = 8;
/** Where names begin, and how wide a character of them is. */
export const NAMES = 30;
const CHARACTER = 0.6 * TEXT;
/** Names of one way are on several lines, if they are longer than this together. */
const LINE_CHARACTERS = 32;

/** The ways out of each state, in the order of the definition. */
export const waysOf = ({ arrows }: Definition): Way[] => {
  const ways: Map<string, Way> = new Map();
  for (const { from, to, event } of arrows) {
    const key = `${from} ${to}`;
    const way = ways.get(key) ?? { from, to, events: [] };
    if (!way.events.includes(event)) way.events.push(event);
    ways.set(key, way);
  }
  return [...ways.values()];
};

const lengthOf = (words: string[]) => words.join(", ").length;

/** Words in lines. */
const wrapped = (words: string[]): string[][] => {
  const lines: string[][] = [];
  for (const word of words) {
    const last = lines.at(-1);
    if (last === undefined || lengthOf([...last, word]) > LINE_CHARACTERS) lines.push([word]);
    else last.push(word);
  }
  return lines;
};

/** Y: of its line, below its names. */
export type PlacedWay = Way & { lines: string[][]; top: number; y: number };

export type PlacedState = { name: string; isFinal: boolean; top: number; middle: number; bottom: number };

/** Places everything. No part of it needs a document. */
export const placed = (machine: Definition) => {
  const ways = waysOf(machine);
  let top = MARGIN;
  const states: PlacedState[] = [];
  const out: PlacedWay[] = [];
  for (const state of machine.states) {
    const box = top;
    top += BOX.height + 4;
    for (const way of ways.filter(({ from }) => from === state.name)) {
      const lines = wrapped(way.events);
      const y = top + lines.length * LINE + 3;
      out.push({ ...way, lines, top, y });
      top = y + 6;
    }
    states.push({
      name: state.name,
      isFinal: state.final,
      top: box,
      middle: box + BOX.height / 2,
      bottom: box + BOX.height,
    });
    top += GAP;
  }
  const longest = Math.max(0, ...out.flatMap(({ lines }) => lines.map(lengthOf)));
  const lanes = Math.max(BOX.width + 2 * LANE, NAMES + longest * CHARACTER + LANE);
  const targets = machine.states.filter(({ name }) => out.some(({ to }) => to === name));
  const laneOf = (to: string) => lanes + targets.findIndex(({ name }) => name === to) * LANE;
  return {
    states,
    ways: out,
    laneOf,
    width: lanes + targets.length * LANE + MARGIN,
    height: top - GAP + MARGIN,
  };
};
