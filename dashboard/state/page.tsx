/** Why a session, a trigger, a change request or the account is in its state, and what would move it. */
import { counted, duration, moment } from "../elements/format.ts";
import { Act } from "../ui/act.tsx";
import { framedPage } from "../ui/framed-page.tsx";
import { Badge, Callout, Empty, Prose, Time, Trail } from "../ui/parts.tsx";
import {
  accountState,
  beginVisit,
  changeRequestState,
  type Machine,
  sessionState,
  type Shown,
  triggerState,
  wantMore,
} from "./reading.ts";
import { Statechart } from "./statechart.tsx";

/** @param props `name`: the state's in the API */
const State = ({ name }: { readonly name: string }) => <Badge status={name.replaceAll("_", " ")} />;

/** A name in the API, which is shown on request (state.css). */
const Named = ({ name }: { readonly name: string }) => (
  <span className="quiet code-name">
    <code>{name}</code>
  </span>
);

const Next = ({ machine: { next, state } }: { readonly machine: Machine }) => (
  <section>
    <h3>What can happen next</h3>
    {next.length === 0 ? (
      <p className="quiet">Nothing changes this by itself.</p>
    ) : (
      <ul className="next">
        {next.map(({ event, to, text, at }) => (
          <li key={`${event} ${to ?? ""}`}>
            <p>
              <Prose text={text} />
            </p>
            <p className="quiet">
              {to !== null && to !== state && (
                <>
                  {"It is then "}
                  <State name={to} />{" "}
                </>
              )}
              {at !== null && (
                <>
                  <Time at={at} />
                  {` (${moment(at)}) `}
                </>
              )}
              <Named name={event} />
            </p>
          </li>
        ))}
      </ul>
    )}
  </section>
);

const sentence = (text: string): string => `${text.slice(0, 1).toUpperCase()}${text.slice(1)}.`;

const Pending = ({ pending }: Pick<Machine, "pending">) => (
  <section>
    <h3>Under way</h3>
    <ul className="next">
      {pending.map(({ command, text, since, attempts, last_error: error }, at) => (
        <li key={`${command} ${at}`}>
          <p>
            {`${sentence(text)} `}
            <span className="quiet">
              {"Begun "}
              <Time at={since} />
              {". "}
            </span>
            <Named name={command} />
          </p>
          {attempts > 0 && (
            <Callout tone="warn">
              {`It failed ${attempts === 1 ? "once" : counted(attempts, "time")}, and is tried again.`}
              {error !== null && <p className="text">{error}</p>}
            </Callout>
          )}
        </li>
      ))}
    </ul>
  </section>
);

const Transition = ({ of }: { readonly of: Machine["transitions"][number] }) => {
  const { at, event, text, from, to, detail, commands, duration_ms: ms } = of;
  return (
    <tr>
      <td>
        <Time at={at} />
      </td>
      <td>
        <p>
          <Prose text={text} /> <Named name={event} />
        </p>
        {detail !== null && <p className="text detail">{detail}</p>}
      </td>
      <td>
        {from !== null && from !== to && (
          <>
            <State name={from} />
            {" → "}
          </>
        )}
        <State name={to} />
      </td>
      <td className="quiet">{ms === null ? "" : duration(ms)}</td>
      <td className="quiet code-name">{commands.join(", ")}</td>
    </tr>
  );
};

const History = ({ transitions }: Pick<Machine, "transitions">) =>
  transitions.length === 0 ? (
    <Empty title="Nothing has happened yet.">The history begins with the next change.</Empty>
  ) : (
    <table className="history">
      <caption>History, the newest first</caption>
      <thead>
        <tr>
          {["When", "What happened", "State", "After"].map((name) => (
            <th key={name} scope="col">
              {name}
            </th>
          ))}
          <th scope="col" className="code-name">
            Commands
          </th>
        </tr>
      </thead>
      <tbody>
        {transitions.map((one) => (
          <Transition key={one.number} of={one} />
        ))}
      </tbody>
    </table>
  );

const MachineView = ({
  label,
  machine,
  definitions,
}: Shown["machines"][number] & Pick<Shown, "definitions">) => {
  const definition = definitions.get(machine.machine ?? "");
  return (
    <section className="machine">
      <h2>
        {`${label} `}
        {machine.state !== null && <State name={machine.state} />}
        {machine.since !== null && (
          <span className="quiet">
            {" "}
            <Time at={machine.since} />
          </span>
        )}
      </h2>
      <ul className="why">
        {machine.why.map((one) => (
          <li key={one} className="text">
            <Prose text={one} />
          </li>
        ))}
      </ul>
      <div className="machine-words">
        <Next machine={machine} />
        {machine.pending.length > 0 && <Pending pending={machine.pending} />}
      </div>
      {machine.machine !== null && (
        <>
          <History transitions={machine.transitions} />
          <details className="group">
            <summary>The state machine, and its names</summary>
            {definition !== undefined && (
              <div className="machine-chart">
                <Statechart machine={definition} state={machine.state} taken={machine.transitions} />
              </div>
            )}
          </details>
        </>
      )}
    </section>
  );
};

const Page = ({ data: { steps, title, lead, machines, definitions } }: { readonly data: Shown }) => (
  <>
    <Trail steps={[...steps, ["Why this state?", null]]} />
    <header className="head">
      <h1>{title}</h1>
      {lead !== null && (
        <p className="text">
          <Prose text={lead} />
        </p>
      )}
    </header>
    {machines.map((one) => (
      <MachineView key={one.label} {...one} definitions={definitions} />
    ))}
    {machines.some(({ machine }) => machine.next_cursor !== null) && (
      <p className="actions">
        <Act label="Show more of the history" does={async () => wantMore()} />
      </p>
    )}
  </>
);

const stateOf = (load: (params: readonly string[]) => Promise<Shown>) =>
  framedPage({
    load,
    follow: () => {
      beginVisit();
      return { end: () => undefined };
    },
    title: ({ title }: Shown) => title,
    Body: Page,
  });

export const pages = {
  session: stateOf(sessionState),
  trigger: stateOf(triggerState),
  changeRequest: stateOf(changeRequestState),
  account: stateOf(accountState),
};
