/** What can be done with one thing of a list, behind one sign (frame/menus.ts). */
import type { ReactNode } from "react";

interface ActionsMenu {
  /** The thing, read aloud. */
  readonly about: string;
  readonly children: ReactNode;
}

export const ActionsMenu = ({ about, children }: ActionsMenu) => (
  <details className="menu">
    <summary aria-label={`Actions for ${about}`} title="Actions">
      ⋯
    </summary>
    <div className="menu-items">{children}</div>
  </details>
);
