/**
 * A state machine as a picture. States are boxes, one below the other. Below each box are its ways out: a line for each
 * state that can follow, with the events' names on it. All lines to one state meet in one lane at the right, which ends in
 * that state's box. So no name covers another one, however wide the screen is.
 */
import { visible } from "../elements/text.ts";
import type { MachineDefinition } from "../wire.d.ts";

/** The arrows from one state to another one. */
interface Way {
  from: string;
  to: string;
  events: string[];
}

const BOX = { width: 150, height: 32 };
const LINE = 15;
const GAP = 20;
const LANE = 14;
const MARGIN = 8;
/** Where names begin, and how wide a character of them is. */
const NAMES = 30;
const CHARACTER = 6.9;
/** Names of one way are on several lines, if they are longer than this together. */
const LINE_CHARACTERS = 32;

const SVG = "http://www.w3.org/2000/svg";
/** The page describes pictures with these alone. */
const ALLOWED = new Set([
  "class",
  "viewBox",
  "width",
  "height",
  "x",
  "y",
  "rx",
  "cx",
  "cy",
  "r",
  "d",
  "role",
  "aria-label",
]);

const s = (
  tag: string,
  attributes: Record<string, string | number>,
  ...children: readonly (Node | string)[]
) => {
  const element = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (!ALLOWED.has(name)) throw new Error(`the picture sets no ${name} attribute`);
    element.setAttribute(name, String(value));
  }
  for (const child of children) element.append(child instanceof Node ? child : visible(child));
  return element;
};

/** The ways out of each state, in the order of the definition. */
export const waysOf = ({ arrows }: MachineDefinition): Way[] => {
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
type PlacedWay = Way & { lines: string[][]; top: number; y: number };

type PlacedState = { name: string; isFinal: boolean; top: number; middle: number; bottom: number };

/** Places everything. No part of it needs a document. */
export const placed = (machine: MachineDefinition) => {
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

/** @param shown taken: newest first */
export const statechart = (
  machine: MachineDefinition,
  { state, taken }: { state: string | null; taken: { from: string | null; to: string; event: string }[] },
) => {
  const { states, ways, laneOf, width, height } = placed(machine);
  const takenOn = (way: Way) => taken.filter(({ from, to }) => from === way.from && to === way.to);
  const last = taken.find(({ from }) => from !== null);
  const tone = (way: Way) => {
    if (last !== undefined && last.from === way.from && last.to === way.to) return "way last";
    return takenOn(way).length > 0 ? "way taken" : "way";
  };
  const boxes = new Map(states.map((box) => [box.name, box]));
  // A taken way is drawn above the others.
  const inOrder = ways.toSorted((a, b) => tone(a).length - tone(b).length);
  const words = state === null ? "" : ` The present state is ${state}.`;
  return s(
    "svg",
    {
      class: "statechart",
      viewBox: `0 0 ${Math.ceil(width)} ${Math.ceil(height)}`,
      width: Math.ceil(width),
      height: Math.ceil(height),
      role: "img",
      "aria-label": `The states of a ${machine.name}.${words} The history below lists the transitions that were taken.`,
    },
    ...inOrder.map((way) =>
      wayView(way, {
        tone: tone(way),
        lane: laneOf(way.to),
        boxes,
        times: (event) => takenOn(way).filter((one) => one.event === event).length,
      }),
    ),
    ...states.map((box) =>
      stateView(box, { isLit: box.name === state, isFirst: box.name === machine.initial }),
    ),
  );
};

/** From the box down, along the names, into the lane, and to the other box. */
const wayView = (
  way: PlacedWay,
  {
    tone,
    lane,
    boxes,
    times,
  }: { tone: string; lane: number; boxes: Map<string, PlacedState>; times: (event: string) => number },
) => {
  const [from, to] = [boxes.get(way.from), boxes.get(way.to)];
  if (from === undefined || to === undefined) return s("g", {});
  const stem = MARGIN + 10;
  const end = MARGIN + BOX.width;
  const path = `M ${stem} ${from.bottom} V ${way.y} H ${lane} V ${to.middle} H ${end + 2}`;
  const head = `M ${end + 8} ${to.middle - 4} L ${end + 1} ${to.middle} L ${end + 8} ${to.middle + 4}`;
  return s(
    "g",
    { class: tone },
    s("path", { d: path }),
    s("path", { d: head }),
    s("circle", { cx: lane, cy: way.y, r: 2.5 }),
    ...way.lines.map((line, index) =>
      s(
        "text",
        { x: NAMES, y: way.top + (index + 1) * LINE - 3 },
        ...line.flatMap((event, place) => [
          ...(place > 0 ? [", "] : []),
          s(
            "tspan",
            { class: times(event) > 0 ? "done" : "open" },
            event + (times(event) > 1 ? ` ×${times(event)}` : ""),
          ),
        ]),
      ),
    ),
  );
};

const stateView = (
  { name, top, middle, isFinal }: PlacedState,
  { isLit, isFirst }: { isLit: boolean; isFirst: boolean },
) => {
  const size = { rx: 8, width: BOX.width, height: BOX.height };
  return s(
    "g",
    { class: isLit ? "state lit" : "state" },
    s("rect", { ...size, x: MARGIN, y: top }),
    ...(isFinal
      ? [s("rect", { rx: 6, x: MARGIN + 3, y: top + 3, width: BOX.width - 6, height: BOX.height - 6 })]
      : []),
    ...(isFirst ? [s("circle", { cx: MARGIN + 14, cy: middle, r: 3.5 })] : []),
    s("text", { x: MARGIN + (isFirst ? 26 : 14), y: middle + 4 }, name),
  );
};
