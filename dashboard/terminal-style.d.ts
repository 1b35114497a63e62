/** The styles of the terminal as text: its package's and `terminal.css` (src/http/pages/page-files.ts). */
export declare const style: string;
