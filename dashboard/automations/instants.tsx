/** When a schedule is due: in the trigger's time zone, and in the reader's. */
import { moment, ZONE } from "../elements/format.ts";
import { Time } from "../ui/parts.tsx";

/** Formats are costly to make. Null: this browser does not know the zone. */
const formats = new Map<string, Intl.DateTimeFormat | null>();

const makeFormat = (timeZone: string): Intl.DateTimeFormat | null => {
  try {
    return new Intl.DateTimeFormat(undefined, {
      timeZone,
      weekday: "short",
      year: "numeric",
      month: "short",
      day: "numeric",
      hour: "numeric",
      minute: "2-digit",
      second: "2-digit",
    });
  } catch {
    return null;
  }
};

const formatOf = (zone: string): Intl.DateTimeFormat | null => {
  const known = formats.get(zone);
  if (known !== undefined) return known;
  const made = makeFormat(zone);
  formats.set(zone, made);
  return made;
};

interface Instants {
  /** Soonest first. */
  readonly instants: readonly string[];
  /** The trigger's. */
  readonly zone: string;
}

/** A column for each zone, one if both are the same. */
export const Instants = ({ instants, zone }: Instants) => {
  const isOwn = zone === ZONE || formatOf(zone) === null;
  const wall = (at: string, where: string) => formatOf(where)?.format(new Date(at)) ?? moment(at);
  return (
    <div className="table" tabIndex={0} role="region" aria-label="Next runs">
      <table className="instants">
        <thead>
          <tr>
            {!isOwn && <th scope="col">{zone}</th>}
            <th scope="col">{zone === ZONE ? ZONE : `${ZONE} (you)`}</th>
            <th scope="col">
              <span className="unseen">From now</span>
            </th>
          </tr>
        </thead>
        <tbody>
          {instants.map((at) => (
            <tr key={at}>
              {!isOwn && <td>{wall(at, zone)}</td>}
              <td>{wall(at, ZONE)}</td>
              <td className="quiet">
                <Time at={at} />
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
};
