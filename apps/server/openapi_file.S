// openapi.json inside the program.
        .section .rodata
        .global couplet_openapi
        .global couplet_openapi_end
couplet_openapi:
        .incbin "openapi.json"
couplet_openapi_end:
        .byte 0
        .section .note.GNU-stack, "", @progbits
