/** An icon of Lucide's, of which the page has only those that it names (elements/icons.ts). What one stands for is said beside it in words. */
import type { IconNode } from "../elements/icons.ts";

interface Icon {
  readonly icon: IconNode;
  readonly className: string;
  /** What a style may go by. */
  readonly "data-activity"?: string;
}

export const Icon = ({ icon, ...attributes }: Icon) => (
  <svg {...attributes} viewBox="0 0 24 24" aria-hidden="true">
    {icon.map(([Shape, shape], at) => (
      <Shape key={at} {...shape} />
    ))}
  </svg>
);
