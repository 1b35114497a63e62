/** A ring that shows how full the agent's context is, with its name where there is room. Its words are shown to a reader who points at it or goes to it. */
import { type ContextState, contextWords, fullShare } from "./context.ts";

/** From here on, the runtime is about to replace the conversation with a summary. */
const NEARLY_FULL = 0.8;

export const ContextMeter = ({ state }: { readonly state: ContextState }) => {
  const share = fullShare(state);
  const words = contextWords(state);
  return (
    <span
      className="meter"
      role="img"
      tabIndex={0}
      aria-label={words}
      data-full={share !== null && share >= NEARLY_FULL ? "nearly" : undefined}
    >
      <svg viewBox="0 0 20 20" aria-hidden="true">
        <circle className="meter-ring" cx="10" cy="10" r="7.5" pathLength="100" data-known={share !== null} />
        {share !== null && (
          <circle
            className="meter-part"
            cx="10"
            cy="10"
            r="7.5"
            pathLength="100"
            strokeDasharray={`${share * 100} 100`}
          />
        )}
      </svg>
      <span className="meter-label" aria-hidden="true">
        {share === null ? "Context" : `Context ${String(Math.round(share * 100))} %`}
      </span>
      <span className="meter-words" aria-hidden="true">
        {words}
      </span>
    </span>
  );
};
