/** What a page shows if it cannot draw itself. The frame around it works on. */
import { Component, type ReactNode } from "react";
import { Callout } from "./parts.tsx";

interface Props {
  readonly children: ReactNode;
}

/** React has no function for this. */
export class Fault extends Component<Props, { readonly isFaulty: boolean }> {
  override state = { isFaulty: false };

  static getDerivedStateFromError = () => ({ isFaulty: true });

  override render(): ReactNode {
    return this.state.isFaulty ? (
      <div role="alert">
        <Callout tone="bad">
          <strong>This page has a fault. </strong>Reload it. If that does not help, tell your operator: the
          browser's console has the reason.
        </Callout>
      </div>
    ) : (
      this.props.children
    );
  }
}
