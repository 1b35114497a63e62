/** The panel beside the conversation: its tabs, and in a narrow window the choice of what is shown. */
import { type KeyboardEvent, type ReactNode, useState } from "react";
import type { Place, Tab } from "./place.ts";

const LABELS: Readonly<Record<Tab, string>> = {
  changes: "Changes",
  files: "Files",
  terminal: "Terminal",
  preview: "Preview",
  log: "Log",
  details: "Details",
};

export interface Part {
  readonly tab: Tab;
  /** Something to know before the tab is opened, e.g. how many files changed. */
  readonly count: number;
  readonly content: ReactNode;
}

const Label = ({ tab, count }: Part) => (
  <>
    {LABELS[tab]}
    {count > 0 && <span className="quiet"> {count}</span>}
  </>
);

interface Choice {
  readonly parts: readonly Part[];
  readonly place: Place;
}

/** The arrow keys choose, as in every list of tabs: showing a tab changes nothing. */
const Tabs = ({ parts, place: { tab: chosen, choose } }: Choice) => {
  const pressed = (event: KeyboardEvent<HTMLElement>): void => {
    const at = parts.findIndex(({ tab }) => tab === chosen);
    const last = parts.length - 1;
    const next = {
      ArrowRight: at === last ? 0 : at + 1,
      ArrowLeft: at === 0 ? last : at - 1,
      Home: 0,
      End: last,
    }[event.key];
    const part = next === undefined ? undefined : parts[next];
    if (part === undefined) return;
    event.preventDefault();
    choose(part.tab);
    document.getElementById(`tab-${part.tab}`)?.focus();
  };
  return (
    <div role="tablist" aria-label="Parts of the session" className="panel-tabs" onKeyDown={pressed}>
      {parts.map((part) => (
        <button
          key={part.tab}
          id={`tab-${part.tab}`}
          type="button"
          role="tab"
          aria-selected={part.tab === chosen}
          aria-controls={`part-${part.tab}`}
          tabIndex={part.tab === chosen ? 0 : -1}
          onClick={() => choose(part.tab)}
        >
          <Label {...part} />
        </button>
      ))}
    </div>
  );
};

/** A phone has room for two names. The others are in a menu, which is called as the chosen one. */
export const NarrowChoice = ({
  parts: [first, ...others],
  place: { tab: chosen, choose, close },
}: Choice) => {
  const other = others.find(({ tab }) => tab === chosen);
  return (
    <nav className="panel-choice" aria-label="Parts of the session">
      <button type="button" aria-current={chosen === null ? "page" : undefined} onClick={close}>
        Conversation
      </button>
      {first !== undefined && (
        <button
          type="button"
          aria-current={first.tab === chosen ? "page" : undefined}
          onClick={() => choose(first.tab)}
        >
          <Label {...first} />
        </button>
      )}
      <details className="menu">
        <summary aria-current={other === undefined ? undefined : "page"}>
          {other === undefined ? "More" : LABELS[other.tab]} ▾
        </summary>
        <div className="menu-items">
          {others.map((part) => (
            <button key={part.tab} type="button" onClick={() => choose(part.tab)}>
              <Label {...part} />
            </button>
          ))}
        </div>
      </details>
    </nav>
  );
};

/** What was shown once stays as the reader left it. */
export const Panel = ({ parts, place }: Choice) => {
  const { tab: chosen, isNarrow } = place;
  const [visited, setVisited] = useState<readonly Tab[]>([]);
  if (chosen !== null && !visited.includes(chosen)) setVisited([...visited, chosen]);
  return (
    <aside id="session-panel" className="session-panel" aria-label="Panel" hidden={chosen === null}>
      {!isNarrow && <Tabs parts={parts} place={place} />}
      {parts.map(({ tab, content }) => (
        <div
          key={tab}
          id={`part-${tab}`}
          className="part"
          role={isNarrow ? "region" : "tabpanel"}
          aria-label={LABELS[tab]}
          tabIndex={0}
          hidden={tab !== chosen}
        >
          {visited.includes(tab) && content}
        </div>
      ))}
    </aside>
  );
};
