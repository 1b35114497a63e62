/** A state machine as a picture (places.ts). */
import { Fragment } from "react";
import {
  BOX,
  LINE,
  MARGIN,
  NAMES,
  type PlacedState,
  type PlacedWay,
  placed,
  TEXT,
  type Way,
} from "./places.ts";
import type { Definition, Machine } from "./reading.ts";

interface Chart {
  readonly machine: Definition;
  /** The present one. */
  readonly state: string | null;
  /** Newest first. */
  readonly taken: Machine["transitions"];
}

export const Statechart = ({ machine, state, taken }: Chart) => {
  const { states, ways, laneOf, width, height } = placed(machine);
  const takenOn = (way: Way) => taken.filter(({ from, to }) => from === way.from && to === way.to);
  const last = taken.find(({ from }) => from !== null);
  const tone = (way: Way): string => {
    if (last !== undefined && last.from === way.from && last.to === way.to) return "way last";
    return takenOn(way).length > 0 ? "way taken" : "way";
  };
  const boxes = new Map(states.map((box) => [box.name, box]));
  // A taken way is drawn above the others.
  const inOrder = ways.toSorted((a, b) => tone(a).length - tone(b).length);
  const words = state === null ? "" : ` The present state is ${state}.`;
  return (
    <svg
      className="statechart"
      viewBox={`0 0 ${Math.ceil(width)} ${Math.ceil(height)}`}
      width={Math.ceil(width)}
      height={Math.ceil(height)}
      fontSize={TEXT}
      role="img"
      aria-label={`The states of a ${machine.name}.${words} The history below lists the transitions that were taken.`}
    >
      {inOrder.map((way) => (
        <WayView
          key={`${way.from} ${way.to}`}
          way={way}
          tone={tone(way)}
          lane={laneOf(way.to)}
          boxes={boxes}
          times={(event) => takenOn(way).filter((one) => one.event === event).length}
        />
      ))}
      {states.map((box) => (
        <StateView
          key={box.name}
          box={box}
          isLit={box.name === state}
          isFirst={box.name === machine.initial}
        />
      ))}
    </svg>
  );
};

interface OfWay {
  readonly way: PlacedWay;
  readonly tone: string;
  readonly lane: number;
  readonly boxes: ReadonlyMap<string, PlacedState>;
  readonly times: (event: string) => number;
}

/** From the box down, along the names, into the lane, and to the other box. */
const WayView = ({ way, tone, lane, boxes, times }: OfWay) => {
  const [from, to] = [boxes.get(way.from), boxes.get(way.to)];
  if (from === undefined || to === undefined) return null;
  const stem = MARGIN + 10;
  const end = MARGIN + BOX.width;
  return (
    <g className={tone}>
      <path d={`M ${stem} ${from.bottom} V ${way.y} H ${lane} V ${to.middle} H ${end + 2}`} />
      <path d={`M ${end + 8} ${to.middle - 4} L ${end + 1} ${to.middle} L ${end + 8} ${to.middle + 4}`} />
      <circle cx={lane} cy={way.y} r={2.5} />
      {way.lines.map((line, index) => (
        <text key={line[0]} x={NAMES} y={way.top + (index + 1) * LINE - 3}>
          {line.map((event, place) => (
            <Fragment key={event}>
              {place > 0 && ", "}
              <tspan className={times(event) > 0 ? "done" : "open"}>
                {`${event}${times(event) > 1 ? ` ×${times(event)}` : ""}`}
              </tspan>
            </Fragment>
          ))}
        </text>
      ))}
    </g>
  );
};

interface OfState {
  readonly box: PlacedState;
  readonly isLit: boolean;
  readonly isFirst: boolean;
}

const StateView = ({ box: { name, top, middle, isFinal }, isLit, isFirst }: OfState) => (
  <g className={isLit ? "state lit" : "state"}>
    <rect rx={8} width={BOX.width} height={BOX.height} x={MARGIN} y={top} />
    {isFinal && <rect rx={6} x={MARGIN + 3} y={top + 3} width={BOX.width - 6} height={BOX.height - 6} />}
    {isFirst && <circle cx={MARGIN + 14} cy={middle} r={3.5} />}
    <text x={MARGIN + (isFirst ? 26 : 14)} y={middle + 4}>
      {name}
    </text>
  </g>
);
